# Runs the user's file untouched, with `&`. Static, so that it can be signed; takes everything from the environment and uses
# nothing that a constrained language mode refuses.
$global:ErrorActionPreference = $env:PROW_ERROR_ACTION
$global:ProgressPreference = 'SilentlyContinue'
$PSNativeCommandUseErrorActionPreference = $env:PROW_NATIVE_ERRORS -eq 'Stop'
$global:LASTEXITCODE = 0
try { & $env:PROW_SCRIPT }
catch {
  $code = if ($_.FullyQualifiedErrorId -like 'ProgramExitedWithNonZeroCode*' -and $LASTEXITCODE) { $LASTEXITCODE } else { 1 }
  Write-Error -ErrorRecord $_ -ErrorAction Continue
  exit $code
}
if ($env:PROW_NATIVE_ERRORS -eq 'Ignore') { exit 0 }
exit $LASTEXITCODE
