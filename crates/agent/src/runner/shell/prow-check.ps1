# Runs a check: a boolean as its last output is the verdict, else its explicit exit code (0 yes, 1 no). No verdict ends with 126.
$global:ErrorActionPreference = $env:PROW_ERROR_ACTION
$global:ProgressPreference = 'SilentlyContinue'
$global:LASTEXITCODE = 126
$last = $null
try { & $env:PROW_SCRIPT | ForEach-Object { $last = $_; $_ } }
catch {
  Write-Error -ErrorRecord $_ -ErrorAction Continue
  exit 126
}
if ($last -is [bool]) { if ($last) { exit 0 } else { exit 1 } }
exit $LASTEXITCODE
