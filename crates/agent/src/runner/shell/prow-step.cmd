@rem Runs the user's file untouched. Static, and takes everything from the environment: PROW_SCRIPT, PROW_CODE_PAGE.
@setlocal enableextensions enabledelayedexpansion
@if defined PROW_CODE_PAGE "%SystemRoot%\System32\chcp.com" %PROW_CODE_PAGE% >nul
@echo off
@call "%PROW_SCRIPT%" %*
@exit !ERRORLEVEL!
