# Runs the user's file untouched, with `&`, never `.`; no pipe, no assignment, no redirection: a merged stream would turn what programs
# say on stderr into errors. Static, so that it can be signed; takes everything from the environment. What a constrained language mode
# refuses is used only where the mode was looked at.

# Hands a value on: ${{ steps.<step>.outputs.<name> }}.
function Set-ProwOutput {
  param([Parameter(Mandatory = $true)][string]$Name, [Parameter(Mandatory = $true)][AllowEmptyString()][string]$Value)
  $end = "END-$(Get-Random)"
  Add-Content -LiteralPath $env:PROW_OUTPUT -Encoding UTF8 -Value "$Name<<$end", $Value, $end
}

# Takes a text out of the log from now on.
function Add-ProwMask {
  param([Parameter(Mandatory = $true)][string]$Value)
  Add-Content -LiteralPath $env:PROW_MASK -Encoding UTF8 -Value $Value
}

# Whether a code is in one of the ranges, such as 0 or 1..7. Codes above 0x7fffffff are negative here, and may be written either way.
function __prow_among([long]$Code, [string[]]$Ranges) {
  $unsigned = if ($Code -lt 0) { $Code + 4294967296 } else { $Code }
  foreach ($range in $Ranges) {
    $first, $last = $range -split '\.\.'
    if ($null -eq $last) { $last = $first }
    if (($Code -ge [long]$first -and $Code -le [long]$last) -or ($unsigned -ge [long]$first -and $unsigned -le [long]$last)) {
      return $true
    }
  }
  $false
}

# Runs programs whose codes mean success though they are not 0: Invoke-Native { robocopy A B } -Ok 0..7
function Invoke-Native {
  param([Parameter(Mandatory = $true)][scriptblock]$Command, [string[]]$Ok = '0')
  $PSNativeCommandUseErrorActionPreference = $false
  $global:LASTEXITCODE = 0
  & $Command
  if (__prow_among $global:LASTEXITCODE $Ok) {
    $global:LASTEXITCODE = 0
    return
  }
  Write-Error "exit code $global:LASTEXITCODE is not among $Ok" -ErrorId ProgramExitedWithNonZeroCode -ErrorAction Stop
}

# Stands behind a statement that may have run programs: what a newer PowerShell does by itself.
function __prow_check([int]$Line, [object[]]$Names) {
  $code = $global:LASTEXITCODE
  if ($PSNativeCommandUseErrorActionPreference -eq $false) { return }
  if ($env:PROW_NATIVE_OK -and (__prow_among $code ($env:PROW_NATIVE_OK -split ','))) { return }
  foreach ($name in $Names) {
    if ($name -isnot [string]) { continue }
    $command = Get-Command -Name $name -ErrorAction Ignore | Select-Object -First 1
    if ($command.CommandType -eq 'Alias') { $command = $command.ResolvedCommand }
    if ($command.CommandType -eq 'Application') {
      Write-Error "$name ended with exit code $code (line $Line)" -ErrorId ProgramExitedWithNonZeroCode -ErrorAction Stop
    }
  }
}

# The names of the commands of a pipeline, as code that gives them; nothing for those that only their evaluation would tell.
function __prow_names($Pipeline) {
  foreach ($element in $Pipeline.PipelineElements) {
    if ($element -isnot [System.Management.Automation.Language.CommandAst]) { continue }
    $first = $element.CommandElements[0]
    if ($first -is [System.Management.Automation.Language.StringConstantExpressionAst]) {
      if ($first.Value -match '^(\w+)-\w+$' -and $__prow_verbs -contains $Matches[1]) { continue } # a cmdlet, whose own success $? must go on to tell
      "'" + ($first.Value -replace "['\u2018-\u201b]", '$0$0') + "'"
    } elseif ($first -is [System.Management.Automation.Language.VariableExpressionAst] -or
      ($first -is [System.Management.Automation.Language.ExpandableStringExpressionAst] -and
        -not ($first.NestedExpressions | Where-Object { $_ -isnot [System.Management.Automation.Language.VariableExpressionAst] }))) {
      $first.Extent.Text
    }
  }
}

# The file's code with a check behind each statement that is a pipeline, or an assignment from one, on the same line, so that errors
# name the lines of the file. Where the check does not exist (jobs, other runspaces) it does nothing.
function __prow_instrument([string]$Path) {
  $tokens = $problems = $null
  $ast = [System.Management.Automation.Language.Parser]::ParseFile($Path, [ref]$tokens, [ref]$problems)
  if ($problems) { return $Path }
  if ($ast.ScriptRequirements) { throw 'the script has #Requires' }
  $text = $ast.Extent.Text
  $__prow_verbs = Get-Verb | ForEach-Object { $_.Verb }
  $checks = foreach ($block in $ast.FindAll({
        param($node)
        $node -is [System.Management.Automation.Language.NamedBlockAst] -or
        ($node -is [System.Management.Automation.Language.StatementBlockAst] -and
          $node.Parent -isnot [System.Management.Automation.Language.SubExpressionAst] -and
          $node.Parent -isnot [System.Management.Automation.Language.ArrayExpressionAst] -and
          $node.Parent -isnot [System.Management.Automation.Language.DataStatementAst])
      }, $true)) {
    # a method sees no variables of the script
    $above = $block.Parent
    while ($above -and $above -isnot [System.Management.Automation.Language.TypeDefinitionAst]) { $above = $above.Parent }
    if ($above) { continue }
    foreach ($statement in $block.Statements) {
      $pipeline = $statement
      if ($statement -is [System.Management.Automation.Language.AssignmentStatementAst]) { $pipeline = $statement.Right }
      if ($pipeline -isnot [System.Management.Automation.Language.PipelineAst]) { continue }
      $names = @(__prow_names $pipeline) -join ', '
      if ($names) {
        New-Object psobject -Property @{
          At   = $statement.Extent.EndOffset - $ast.Extent.StartOffset
          Text = '; if (${function:__prow_check} -and $LASTEXITCODE) { __prow_check ' + $statement.Extent.StartLineNumber + " ($names) }"
        }
      }
    }
  }
  foreach ($check in @($checks | Sort-Object At -Descending)) { $text = $text.Insert($check.At, $check.Text) }
  $ast = [System.Management.Automation.Language.Parser]::ParseInput($text, $Path, [ref]$tokens, [ref]$problems)
  if ($problems) { throw "the checks do not fit: $($problems[0].Message)" }
  $ast.GetScriptBlock()
}

# What is run: the file, or its code with checks where this PowerShell does not look at the codes of programs by itself.
function __prow_what {
  if ($env:PROW_NATIVE_ERRORS -ne 'Stop') { return $env:PROW_SCRIPT }
  if ($PSVersionTable.PSVersion.Major -gt 7 -or ($PSVersionTable.PSVersion.Major -eq 7 -and $PSVersionTable.PSVersion.Minor -ge 4)) {
    return $env:PROW_SCRIPT
  }
  $why = if ($env:PROW_CHECKS -ne 'yes') { 'the file is not ours' }
  elseif ($ExecutionContext.SessionState.LanguageMode -ne 'FullLanguage') { "the language mode is $($ExecutionContext.SessionState.LanguageMode)" }
  elseif ((Get-ExecutionPolicy) -eq 'AllSigned') { 'the execution policy is AllSigned' }
  if (-not $why) {
    try { return __prow_instrument $env:PROW_SCRIPT } catch { $why = "$_" }
  }
  Write-Warning "nativeErrors: only the last program's exit code counts, since $why"
  $env:PROW_SCRIPT
}

$global:ErrorActionPreference = $env:PROW_ERROR_ACTION
$global:ProgressPreference = 'SilentlyContinue'
Set-Content -LiteralPath $env:PROW_BEGAN -Value $PID
if ($env:PROW_CODE_PAGE) {
  # refused in a constrained language mode, where the console's code page stays
  try { [Console]::OutputEncoding = New-Object System.Text.UTF8Encoding $false } catch { Write-Warning "outputEncoding: $_" }
}
$PSNativeCommandUseErrorActionPreference = $env:PROW_NATIVE_ERRORS -eq 'Stop'
$__prow = __prow_what
$global:LASTEXITCODE = 0
try { & $__prow @args }
catch {
  $code = 1
  if ($_.FullyQualifiedErrorId -like 'ProgramExitedWithNonZeroCode*' -and $LASTEXITCODE) {
    $code = $LASTEXITCODE
    Add-Content -LiteralPath $env:PROW_BEGAN -Value 'stopped'
  }
  Write-Error -ErrorRecord $_ -ErrorAction Continue
  exit $code
}
if ($env:PROW_NATIVE_ERRORS -eq 'Ignore') { exit 0 }
exit $LASTEXITCODE
