//! A host gets in with a one-time token, and renews by itself.

use crate::harness::{Api, User};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const NODES: &str = "/apis/prow.windows/v1/nodes";
const TOKENS: &str = "/api/v1/namespaces/prow-system/secrets";

/// A token with these data beside its hash; answers what its bearer sends.
async fn token(api: &Api, data: Value) -> String {
    let token = pki::JoinToken::generate(&api.authority.hash()).unwrap();
    let mut data = data;
    data["secret-hash"] = token.bearer.secret_hash().into();
    let secret = json!({"metadata": {"name": format!("enrol-{}", token.bearer.id)}, "type": "prow.windows/enrolment-token", "stringData": data});
    api.admin().post(TOKENS, &secret).await.ok();
    token.bearer.expose()
}

fn request(name: &str, csr_pem: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"signerName": "prow.windows/node-client", "usages": ["client auth"],
        "request": BASE64_STANDARD.encode(csr_pem)}})
}

/// The credentials in an answered request.
fn credentials(answer: &Value, key_pem: &str) -> pki::Credentials {
    let chain = BASE64_STANDARD
        .decode(answer["status"]["certificate"].as_str().unwrap())
        .unwrap();
    pki::Credentials::from_pem(&String::from_utf8(chain).unwrap(), key_pem).unwrap()
}

#[tokio::test]
async fn a_token_becomes_a_certificate_and_a_node_once() {
    let api = Api::start().await;
    let bearer = api.bearer(&token(&api, json!({"labels": r#"{"role":"web"}"#})).await);
    let own = pki::Request::node("web1").unwrap();
    let answer = bearer.post(REQUESTS, &request("web1-a", &own.csr_pem)).await.ok();
    assert_eq!(answer["status"]["conditions"][0]["type"], "Approved");
    let node = api.admin().get(&format!("{NODES}/web1")).await.ok();
    assert_eq!(node["metadata"]["labels"]["role"], "web");

    let agent = api.with_credentials(Some(&credentials(&answer, &own.key_pem)));
    let review = agent
        .post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({}))
        .await
        .ok();
    assert_eq!(review["status"]["userInfo"]["username"], "system:node:web1");
    agent.get(&format!("{NODES}/web1")).await.ok();

    // The answer may have been lost: the bearer finds it again, but gets no second one.
    assert_eq!(bearer.get(&format!("{REQUESTS}/web1-a")).await.ok(), answer);
    let second = pki::Request::node("web2").unwrap();
    bearer
        .post(REQUESTS, &request("web2-a", &second.csr_pem))
        .await
        .fails(403, "used up by node web1");
    api.admin()
        .get(&format!("{NODES}/web2"))
        .await
        .fails(404, "not found");

    let renewed = pki::Request::node("web1").unwrap();
    let answer = agent
        .post(REQUESTS, &request("web1-b", &renewed.csr_pem))
        .await
        .ok();
    let agent = api.with_credentials(Some(&credentials(&answer, &renewed.key_pem)));
    agent.get(&format!("{NODES}/web1")).await.ok();
    agent
        .post(REQUESTS, &request("x", &second.csr_pem))
        .await
        .fails(403, "web2");
    api.admin().delete(&format!("{NODES}/web1")).await.ok();
    let late = pki::Request::node("web1").unwrap();
    agent
        .post(REQUESTS, &request("web1-c", &late.csr_pem))
        .await
        .fails(403, "was deleted");
}

#[tokio::test]
async fn a_token_opens_nothing_else() {
    let api = Api::start().await;
    let bearer = api.bearer(&token(&api, json!({})).await);
    for path in [
        REQUESTS,
        NODES,
        TOKENS,
        "/api/v1/namespaces",
        "/apis/prow.windows/v1/tasks?fieldSelector=spec.nodeName%3Dweb1",
    ] {
        bearer.get(path).await.fails(403, "system:bootstrap:");
    }
    let foreign = json!({"metadata": {"name": "f"}, "spec": {"signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"],
        "request": BASE64_STANDARD.encode(pki::Request::node("web1").unwrap().csr_pem)}});
    bearer
        .post(REQUESTS, &foreign)
        .await
        .fails(403, "prow.windows/node-client");
    api.admin().post(REQUESTS, &foreign).await.ok();
    bearer
        .get(&format!("{REQUESTS}/f"))
        .await
        .fails(403, "cannot get");
}

#[tokio::test]
async fn wrong_tokens_prove_nothing() {
    let api = Api::start().await;
    let good = token(&api, json!({})).await;
    let expired = token(&api, json!({"expires": "2020-01-01T00:00:00Z"})).await;
    let (id, _) = good.split_once('.').unwrap();
    for bad in ["", "x", "a.b", &format!("{id}.wrong"), &expired] {
        let user = api.bearer(bad);
        user.get(REQUESTS).await.fails(401, "Unauthorized");
        user.get("/version").await.fails(401, "Unauthorized");
    }
    // A Secret of another type is no token.
    let other = pki::JoinToken::generate(&api.authority.hash()).unwrap();
    let secret = json!({"metadata": {"name": format!("enrol-{}", other.bearer.id)}, "stringData": {"secret-hash": other.bearer.secret_hash()}});
    api.admin().post(TOKENS, &secret).await.ok();
    api.bearer(&other.bearer.expose())
        .get(REQUESTS)
        .await
        .fails(401, "Unauthorized");
}

#[tokio::test]
async fn names_are_the_tokens_and_nobody_elses() {
    let api = Api::start().await;
    let bearer = api.bearer(&token(&api, json!({"name-pattern": "web*"})).await);
    let csr = |name: &str| request(&format!("{name}-r"), &pki::Request::node(name).unwrap().csr_pem);
    bearer.post(REQUESTS, &csr("db1")).await.fails(403, "named web*");
    api.admin()
        .post(NODES, &json!({"metadata": {"name": "web1"}, "spec": {}}))
        .await
        .ok();
    bearer
        .post(REQUESTS, &csr("web1"))
        .await
        .fails(403, "exists already");
    bearer
        .post(&format!("{REQUESTS}?dryRun=All"), &csr("web2"))
        .await
        .ok();
    api.admin()
        .get(&format!("{NODES}/web2"))
        .await
        .fails(404, "not found");
    bearer.post(REQUESTS, &csr("web2")).await.ok();
    let broken = json!({"metadata": {"name": "b"}, "spec": {"signerName": "prow.windows/node-client", "usages": ["client auth"], "request": "LS0t"}});
    bearer.post(REQUESTS, &broken).await.fails(422, "spec.request");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_hosts_with_one_token_one_gets_in() {
    let api = Api::start().await;
    let token = token(&api, json!({})).await;
    let tries: Vec<_> = (0..8)
        .map(|i| {
            let user: User = api.bearer(&token);
            let name = format!("web{i}");
            tokio::spawn(async move {
                let csr = pki::Request::node(&name).unwrap();
                user.post(REQUESTS, &request(&name, &csr.csr_pem))
                    .await
                    .code
                    .as_u16()
            })
        })
        .collect();
    let mut codes = Vec::new();
    for one in tries {
        codes.push(one.await.unwrap());
    }
    codes.sort();
    assert_eq!(codes, [201, 403, 403, 403, 403, 403, 403, 403]);
    assert_eq!(
        api.admin().get(NODES).await.ok()["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
