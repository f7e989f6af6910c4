//! What users get wrong, and what they are told: each case is a Job in YAML and the errors it must give, all at once.

#![allow(clippy::unwrap_used)] // the helpers below are tests too

use api::{Job, Resource};

/// A Job whose spec is `spec`, decoded as the server does.
fn job(spec: &str) -> Job {
    let spec: serde_json::Value = serde_saphyr::from_str(spec).unwrap();
    serde_json::from_value(serde_json::json!({
        "apiVersion": "prow.windows/v1", "kind": "Job",
        "metadata": {"name": "x", "namespace": "ops"}, "spec": spec,
    }))
    .unwrap()
}

fn errors(spec: &str) -> Vec<String> {
    job(spec).validate().iter().map(ToString::to_string).collect()
}

#[track_caller]
fn refused(spec: &str, expected: &[&str]) {
    assert_eq!(errors(spec), expected);
}

#[track_caller]
fn accepted(spec: &str) {
    assert_eq!(errors(spec), Vec::<String>::new());
}

#[test]
fn a_plain_job_is_accepted() {
    accepted("steps: [{name: a, script: echo hello}]");
    accepted(
        "{steps: [{name: a, command: [ls, -l], args: ['${{ params.dir }}']}], params: [{name: dir, value: /tmp}]}",
    );
    accepted("{targetRef: {name: all}, completionMode: PerNode, steps: [{name: a, check: 'test -e x'}]}");
}

#[test]
fn every_mistake_is_reported_at_once() {
    refused(
        "{parallelism: 101%, queueName: Big, steps: [{name: A}, {name: b, command: [x], script: z, shell: pwhs}]}",
        &[
            "spec.parallelism: Invalid value: \"101%\": must be a number from 0 or a percentage from \"0%\" to \"100%\"",
            "spec.queueName: Invalid value: \"Big\": must be the name of a Queue, a DNS label",
            "spec.steps[0].name: Invalid value: \"A\": must be a DNS label: at most 63 of a-z, 0-9 and \"-\", with a letter or digit at both ends",
            "spec.steps[0].command: Required value: a step needs one of command, script and scriptFile (or check alone, as an assertion)",
            "spec.steps[1].script: Forbidden: not beside command; a step runs one thing",
            "spec.steps[1].shell: Invalid value: \"pwhs\": unknown shell; known are powershell, pwsh, cmd, bash, sh, python, or a command with \"{0}\" in place of the script's path; did you mean \"pwsh\"?",
        ],
    );
}

#[test]
fn nobody_runs_on_one_of_many_hosts_by_accident() {
    refused(
        "{targetRef: {name: web}, steps: [{name: a, script: x}]}",
        &[
            "spec.completionMode: Required value: beside targetRef say whether to run on every node (PerNode) or a number of times on any of them (Indexed)",
        ],
    );
    refused(
        "{completionMode: PerNode, completions: 3, steps: [{name: a, script: x}]}",
        &[
            "spec.targetRef: Required value: PerNode needs a choice of nodes: targetRef, nodeSelector, affinity or nodeNames; for every node write targetRef: {name: all}",
            "spec.completions: Forbidden: PerNode runs once on every chosen node; remove it",
        ],
    );
}

#[test]
fn step_names_are_unique_over_all_four_lists() {
    refused(
        "{preflight: [{name: a, script: x}], steps: [{name: b, script: x}], finally: [{name: a, script: x}]}",
        &["spec.finally[0].name: Duplicate value: \"a\""],
    );
}

#[test]
fn input_cannot_become_code() {
    refused(
        "steps: [{name: a, script: 'echo ${{ params.x }}'}]",
        &[
            "spec.steps[0].script: Forbidden: a script is no template; set a variable under env to the expression and read it in the script",
        ],
    );
    refused(
        "{params: [{name: x, value: z}], steps: [{name: a, command: [sh, -c], args: ['${{ params.x }}']}]}",
        &[
            "spec.steps[0].args[0]: Forbidden: the argument after a shell's command switch is code, and input may not become code; pass the value through env",
        ],
    );
    refused(
        "{params: [{name: x, value: z}], steps: [{name: a, command: [powershell.exe], args: [-NoProfile, -Command, 'x ${{ params.x }}']}]}",
        &[
            "spec.steps[0].args[2]: Forbidden: the argument after a shell's command switch is code, and input may not become code; pass the value through env",
        ],
    );
    refused(
        "{params: [{name: v, value: z}], steps: [{name: a, shell: cmd, script: 'copy a %TEMP%\\%PROW_PARAM_V%'}]}",
        &[
            "spec.steps[0].script: Forbidden: %PROW_PARAM_V% is pasted before cmd reads the line, so its value could run; write !PROW_PARAM_V!",
        ],
    );
    accepted(
        "{params: [{name: v, value: z}], steps: [{name: a, shell: cmd, script: 'copy a %TEMP%\\!PROW_PARAM_V!'}]}",
    );
}

#[test]
fn what_only_powershell_has_is_refused_elsewhere() {
    accepted("{steps: [{name: a, shell: pwsh, script: x, executionPolicy: AllSigned, nativeErrors: Last}]}");
    accepted("{steps: [{name: a, script: x, nativeErrors: Ignore}]}"); // the shell of the host, which Windows makes PowerShell
    refused(
        "{steps: [{name: a, shell: cmd, script: x, executionPolicy: Bypass}, {name: b, command: [x], nativeErrors: Stop}]}",
        &[
            "spec.steps[0].executionPolicy: Forbidden: only powershell and pwsh have this; the shell is \"cmd\"",
            "spec.steps[1].nativeErrors: Forbidden: is for scripts of PowerShell, and this step has none",
        ],
    );
}

#[test]
fn a_script_file_comes_from_one_place() {
    accepted(
        "{steps: [{name: a, shell: powershell, scriptFile: {configMap: scripts, path: deploy.ps1}, args: [x]}]}",
    );
    accepted("{steps: [{name: a, shell: cmd, scriptFile: {hostPath: 'C:\\scripts\\x.BAT'}}]}");
    accepted("{steps: [{name: a, shell: sh, scriptFile: {hostPath: /opt/x}}]}");
    refused(
        "{steps: [{name: a, scriptFile: {configMap: s, hostPath: /x}}, {name: b, scriptFile: {configMap: s}}, {name: c, scriptFile: {hostPath: x.ps1}}]}",
        &[
            "spec.steps[0].scriptFile: Invalid value: \"\": needs exactly one of artifact, configMap and hostPath",
            "spec.steps[1].scriptFile.path: Required value: the key of the ConfigMap, or the file within the artifact",
            "spec.steps[2].scriptFile.hostPath: Invalid value: \"x.ps1\": must be a full path, such as \"C:\\scripts\\x.ps1\" or \"/opt/x.sh\"",
        ],
    );
    refused(
        "{steps: [{name: a, shell: powershell, scriptFile: {hostPath: 'C:\\x.txt'}}, {name: b, shell: cmd, scriptFile: {hostPath: '\\\\h\\s\\x.ps1', path: k}}]}",
        &[
            "spec.steps[0].scriptFile.hostPath: Invalid value: \"C:\\x.txt\": must end with .ps1, or the shell does not run it",
            "spec.steps[1].scriptFile.path: Forbidden: not beside hostPath, which is the whole path",
        ],
    );
    refused(
        "{steps: [{name: a, scriptFile: {artifact: {name: x}, path: a.ps1}}]}",
        &[
            "spec.steps[0].scriptFile.artifact: Forbidden: not supported yet: this version would ignore it; remove the field",
        ],
    );
}

/// AP-07.
#[test]
fn what_windows_needs_cannot_be_taken_from_the_environment() {
    refused(
        "{steps: [{name: a, script: x, env: [{name: SystemRoot}, {name: ComSpec, value: ''}, {name: TEMP, value: 'D:\\t'}]}]}",
        &[
            "spec.steps[0].env[0].value: Forbidden: SystemRoot cannot be removed: programs of Windows do not work without it",
            "spec.steps[0].env[1].value: Forbidden: ComSpec cannot be removed: programs of Windows do not work without it",
        ],
    );
}

/// AP-08.
#[test]
fn cmd_is_not_started_in_a_network_folder() {
    for dir in [r"\\files\share\job", "//files/share/job", r"\/files\share"] {
        refused(
            &format!("steps: [{{name: a, shell: cmd, script: 'del /q *.tmp', workingDir: '{dir}'}}]"),
            &[
                "spec.steps[0].workingDir: Forbidden: cmd cannot start in a network folder and would go on in the Windows directory; begin the script with pushd, which maps it",
            ],
        );
        accepted(&format!(
            "steps: [{{name: a, shell: powershell, script: x, workingDir: '{dir}'}}]"
        ));
    }
    accepted(r"steps: [{name: a, shell: cmd, script: x, workingDir: 'C:\jobs'}]");
}

#[test]
fn secrets_do_not_reach_command_lines() {
    refused(
        "steps: [{name: a, command: [curl, $(TOKEN)], env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]",
        &[
            "spec.steps[0].command[1]: Forbidden: $(TOKEN) would put a secret on a command line, which every process on the host can read; let the program read the variable TOKEN",
        ],
    );
    accepted(
        "steps: [{name: a, command: [echo, $$(TOKEN)], env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]",
    );
    accepted(
        "{env: [{name: T, valueFrom: {secretKeyRef: {name: s, key: k}}}], steps: [{name: a, command: [echo, $(T)], env: [{name: T, value: plain}]}]}",
    );
    refused(
        "{env: [{name: Token, valueFrom: {secretKeyRef: {name: s, key: k}}}], steps: [{name: a, command: [echo, $(TOKEN)]}]}",
        &[
            "spec.steps[0].command[1]: Forbidden: $(TOKEN) would put a secret on a command line, which every process on the host can read; let the program read the variable TOKEN",
        ],
    );
}

#[test]
fn expressions_are_checked_before_anything_runs() {
    refused(
        "steps: [{name: build, script: x}, {name: b, script: x, when: steps.biuld.phase == 'Failed'}]",
        &[
            "spec.steps[1].when: Invalid value: \"steps.biuld.phase == 'Failed'\": there is no step \"biuld\", did you mean \"build\"?",
        ],
    );
    refused(
        "steps: [{name: a, script: x, when: \"${{ params.x == '' }}\"}]",
        &[
            "spec.steps[0].when: Invalid value: \"${{ params.x == '' }}\": is an expression by itself; write params.x == ''",
        ],
    );
    refused(
        "steps: [{name: a, command: [x], args: ['${{ node.name']}]",
        &["spec.steps[0].args[0]: Invalid value: \"${{ node.name\": has \"${{\" without \"}}\""],
    );
}

#[test]
fn a_code_has_one_meaning() {
    refused(
        "{retryStrategy: {limit: 1}, steps: [{name: a, command: [x], exitCodes: {success: [0, 3221225477], warning: ['1-7'], fatal: [5, '0xC0000005'], retry: ['7-1']}}]}",
        &[
            "spec.steps[0].exitCodes.retry[0]: Invalid value: \"7-1\": must be an exit code from -2147483648 to 4294967295, hex such as \"0xC0000005\", or a range such as \"1-7\"",
            "spec.steps[0].exitCodes.fatal[0]: Invalid value: \"5\": is also in warning; a code has one meaning",
            "spec.steps[0].exitCodes.fatal[1]: Invalid value: \"0xC0000005\": is also in success; a code has one meaning",
        ],
    );
    refused(
        "steps: [{name: a, command: [x], exitCodes: {retry: [99]}}]",
        &[
            "spec.steps[0].exitCodes.retry: Forbidden: nothing is tried again while retryStrategy.limit is 0 on the step and on the Job; set a limit",
        ],
    );
}

#[test]
fn mounts_stay_under_the_workspace() {
    for path in ["/etc", "..", "a/../../b", "C:\\x", "\\\\srv\\share", "a\\..\\.."] {
        let spec = format!("steps: [{{name: a, script: x, mounts: [{{configMap: c, path: '{path}'}}]}}]");
        refused(
            &spec,
            &[&format!(
                "spec.steps[0].mounts[0].path: Invalid value: \"{path}\": must lie under the workspace: relative, without \"..\" and \":\""
            )],
        );
    }
}

#[test]
fn variables_have_one_source_and_names_of_their_own() {
    refused(
        "{steps: [{name: a, script: x, env: [{name: PROW_JOB, value: x}, {name: A, value: x}, {name: a, value: z}, {name: 'B=C', value: x}, {name: D, value: x, valueFrom: {}}]}]}",
        &[
            "spec.steps[0].env[0].name: Forbidden: names that begin with PROW_ are set by the agent; choose another",
            "spec.steps[0].env[2].name: Duplicate value: \"a\"",
            "spec.steps[0].env[3].name: Invalid value: \"B=C\": a variable's name is not empty and has no \"=\"",
            "spec.steps[0].env[4].valueFrom: Forbidden: not beside value; remove one of the two",
        ],
    );
    refused(
        "{params: [{name: app-version, value: x}, {name: app_version, value: z}], steps: [{name: a, script: x}]}",
        &[
            "spec.params[1].name: Invalid value: \"app_version\": steps see it as PROW_PARAM_APP_VERSION, and so they do \"app-version\"; rename one",
        ],
    );
}

#[test]
fn what_is_not_built_yet_is_refused_not_ignored() {
    for (field, spec) in [
        ("matrix", "matrix: {axes: {a: [x]}}"),
        ("strategy", "strategy: {waves: [{name: w, size: 1}]}"),
        ("nodeSet", "nodeSet: Live"),
        ("templateRef", "templateRef: {name: t}"),
        (
            "synchronization",
            "synchronization: {mutexes: [{name: m, scope: Node}]}",
        ),
        (
            "securityContext",
            "securityContext: {windowsOptions: {runAsUserName: x}}",
        ),
        ("sources", "sources: [{git: {url: x}, path: z}]"),
        ("caches", "caches: [{key: x, path: z}]"),
        ("notify", "notify: [{notifierRef: {name: x}, events: [All]}]"),
        ("override", "override: {reason: x}"),
        ("retryOf", "retryOf: {name: x}"),
        ("priorityClassName", "priorityClassName: x"),
        ("onWindowEnd", "onWindowEnd: Stop"),
        ("impact", "impact: WindowOnly"),
    ] {
        refused(
            &format!("{{{spec}, steps: [{{name: a, script: x}}]}}"),
            &[&format!(
                "spec.{field}: Forbidden: not supported yet: this version would ignore it; remove the field"
            )],
        );
    }
    for (field, step) in [
        ("image", "image: x"),
        ("artifacts", "artifacts: [{name: x, path: z}]"),
        ("resources", "resources: {limits: {cpu: 1}}"),
        ("securityContext", "securityContext: {}"),
    ] {
        refused(
            &format!("steps: [{{name: a, script: x, {step}}}]"),
            &[&format!(
                "spec.steps[0].{field}: Forbidden: not supported yet: this version would ignore it; remove the field"
            )],
        );
    }
}

#[test]
fn spread_and_what_keeps_apart_make_sense() {
    refused(
        "{topologySpreadConstraints: [{maxSkew: 1, topologyKey: 'a b', whenUnsatisfiable: DoNotSchedule}, {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}], steps: [{name: a, script: x}]}",
        &[
            "spec.topologySpreadConstraints[0].topologyKey: Invalid value: \"a b\": a label's name is at most 63 letters, digits, \"-\", \"_\" and \".\", with a DNS name and \"/\" before it if you like",
            "spec.topologySpreadConstraints[2]: Duplicate value: \"zone DoNotSchedule\"",
        ],
    );
    refused(
        "{completionMode: PerNode, nodeNames: [a], topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}], steps: [{name: a, script: x}]}",
        &[
            "spec.topologySpreadConstraints: Forbidden: a PerNode Job runs once on every chosen node, so there is nothing to spread; remove it",
        ],
    );
    refused(
        "{affinity: {jobAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: '', labelSelector: {matchExpressions: [{key: a, operator: Gt, values: ['1']}]}}]}}, steps: [{name: a, script: x}]}",
        &[
            "spec.affinity.jobAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value: \"\": a label's name is at most 63 letters, digits, \"-\", \"_\" and \".\", with a DNS name and \"/\" before it if you like",
            "spec.affinity.jobAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchExpressions[0].operator: Invalid value: \"Gt\": compare numbers in node affinity only",
        ],
    );
    refused(
        "{tolerations: [{key: a, value: b, effect: NoSchedule, tolerationSeconds: 5}], steps: [{name: a, script: x}]}",
        &[
            "spec.tolerations[0].tolerationSeconds: Forbidden: only a toleration of NoExecute ends after a time; remove it or set effect: NoExecute",
        ],
    );
    let emergency = job("{priorityClassName: prow-emergency, steps: [{name: a, script: x}]}");
    assert!(emergency.validate().is_empty(), "{:?}", emergency.validate());
}

#[test]
fn a_restart_of_the_host_must_be_announced() {
    let disruptive =
        |step: &str| format!("{{impact: Disruptive, steps: [{{name: a, script: x, reboot: {step}}}]}}");
    for reboot in [
        "{policy: IfRequested, resume: Same, delaySeconds: 5, readyCheck: exit 0}",
        "{policy: Always}",
        "{policy: SelfInitiated, maxResumes: 1, timeoutSeconds: 60}",
        "{policy: Never}",
    ] {
        let job = job(&disruptive(reboot));
        assert!(job.validate().is_empty(), "{reboot}: {:?}", job.validate());
    }
    refused(
        "{steps: [{name: a, script: x}, {name: b, script: x, reboot: {policy: Always}}]}",
        &["spec.impact: Required value: must be Disruptive, since steps[1] may restart the host"],
    );
    refused(
        "{drainTimeoutSeconds: 5, steps: [{name: a, script: x}]}",
        &[
            "spec.drainTimeoutSeconds: Forbidden: only a Job with impact: Disruptive waits for the node's other Tasks; set it or remove this",
        ],
    );
    refused(
        &disruptive("{resume: Same}"),
        &[
            "spec.steps[0].reboot: Forbidden: the other fields mean nothing while policy is Never; set policy or remove them",
        ],
    );
    refused(
        &disruptive("{policy: Always, resume: Same}"),
        &[
            "spec.steps[0].reboot.resume: Forbidden: Always and Same together restart without end; add a check that says when it is enough, or use IfRequested",
        ],
    );
    refused(
        "{impact: Disruptive, steps: [{name: a, script: x}], finally: [{name: b, script: x, reboot: {policy: Always}}]}",
        &[
            "spec.finally[0].reboot.policy: Forbidden: only a step of steps may restart the host, not one of finally",
        ],
    );
    refused(
        &disruptive("{policy: Always, readyCheck: 'echo ${{ params.x }}'}"),
        &[
            "spec.steps[0].reboot.readyCheck: Forbidden: a script is no template; set a variable under env to the expression and read it in the script",
        ],
    );
}

#[test]
fn only_the_editable_fields_may_change() {
    let old = job("{steps: [{name: a, script: x}], cancel: {reason: why, force: true}}");
    let mut new = old.clone();
    new.spec.suspend = true;
    new.spec.priority = Some(5);
    assert!(new.validate_update(&old).is_empty());
    new.spec.steps[0].script = Some("z".into());
    new.spec.cancel = None;
    let found: Vec<String> = new
        .validate_update(&old)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        found,
        [
            "spec.steps: Forbidden: cannot be changed after creation; what can is suspend, cancel, priority, parallelism, maxFailures, activeDeadlineSeconds, ttlSecondsAfterFinished, notify. For anything else make a new Job",
            "spec.cancel: Forbidden: a cancel cannot be taken back; make a new Job",
        ]
    );
}

#[test]
fn an_unchanged_manifest_stays_unchanged_when_applied_again() {
    let written = "{tolerations: [{key: a, value: b}], retryStrategy: {limit: 1}, \
                   steps: [{name: a, script: x, retryStrategy: {limit: 2}, preStop: {script: z}}]}";
    let stored = serde_json::to_value(job(written)).unwrap();
    let sent: serde_json::Value = serde_saphyr::from_str(written).unwrap();
    for list in ["tolerations", "steps"] {
        assert_eq!(stored["spec"][list], sent[list]);
    }
}
