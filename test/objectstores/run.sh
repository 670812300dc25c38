#!/usr/bin/env bash
# Runs the tests of checkpoints in object stores: on servers for the protocols of S3 and Google Cloud Storage,
# which are Go modules, and on Azurite for that of Azure, which npm fetches into build/azurite.
#
#   test/objectstores/run.sh [ARGUMENT OF go test...]
#
# Where Azurite cannot be had the tests on it are left out, and that is said. With LOWWATER_AZURITE set, uses that one.
set -euo pipefail
cd "$(dirname "$0")/../.."
tags=lowwater_s3,lowwater_gcs,lowwater_azure
azurite=3.35.0 # the last one for Node 20

# fetch_azurite puts Azurite into a directory, unless it is there.
fetch_azurite() { # DIRECTORY
  grep -qs "\"version\": \"$azurite\"" "$1/node_modules/azurite/package.json" && return
  mkdir -p "$1"
  npm install --prefix "$1" --no-audit --no-fund --loglevel=error "azurite@$azurite"
}

if [ -z "${LOWWATER_AZURITE:-}" ]; then
  if fetch_azurite "$PWD/build/azurite"; then
    export LOWWATER_AZURITE=$PWD/build/azurite
  else
    echo "object stores: NOT TESTED on Azure's protocol: Azurite needs Node 20 with npm, and npm's registry" >&2
  fi
fi
go test -tags $tags ./internal/checkpoint
cd test/objectstores
go vet -tags $tags .
go test -tags $tags -count=1 -timeout 10m "$@" .
