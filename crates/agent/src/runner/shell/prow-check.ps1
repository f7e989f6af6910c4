# Runs a check: a boolean as its last output is the verdict, else its exit code (0 yes, 1 no), its own or that of its last program. With
# neither it ends with 126. Static, as prow-step.ps1 is.
$global:ErrorActionPreference = $env:PROW_ERROR_ACTION
$global:ProgressPreference = 'SilentlyContinue'
Set-Content -LiteralPath $env:PROW_BEGAN -Value $PID
if ($env:PROW_CODE_PAGE) {
  # refused in a constrained language mode, where the console's code page stays
  try { [Console]::OutputEncoding = New-Object System.Text.UTF8Encoding $false } catch { Write-Warning "outputEncoding: $_" }
}
$PSNativeCommandUseErrorActionPreference = $false
$global:LASTEXITCODE = 126
$last = $null
try { & $env:PROW_SCRIPT | ForEach-Object { $last = $_; $_ } }
catch {
  Write-Error -ErrorRecord $_ -ErrorAction Continue
  exit 126
}
if ($last -is [bool]) { if ($last) { exit 0 } else { exit 1 } }
exit $LASTEXITCODE
