#!/usr/bin/env bash
# Runs the tests of checkpoints in object stores: on servers for the protocols of S3 and Google Cloud Storage,
# which are Go modules, and on Azurite for that of Azure, which npm fetches into build/azurite.
#
#   test/objectstores/run.sh [ARGUMENT OF go test...]
#
# Without Node the tests on Azurite are left out, and that is said. With LOWWATER_AZURITE set, uses that one.
set -euo pipefail
cd "$(dirname "$0")/../.."
tags=lowwater_s3,lowwater_gcs,lowwater_azure
azurite=3.35.0 # the last one for Node 20

if [ -z "${LOWWATER_AZURITE:-}" ]; then
  if ! command -v npm >/dev/null; then
    echo "object stores: NOT TESTED on Azure's protocol: Azurite needs Node 20 with npm" >&2
  else
    export LOWWATER_AZURITE=$PWD/build/azurite
    if ! grep -qs "\"version\": \"$azurite\"" "$LOWWATER_AZURITE/node_modules/azurite/package.json"; then
      mkdir -p "$LOWWATER_AZURITE"
      npm install --prefix "$LOWWATER_AZURITE" --no-audit --no-fund --loglevel=error "azurite@$azurite"
    fi
  fi
fi
go test -tags $tags ./internal/checkpoint
cd test/objectstores
go vet -tags $tags .
go test -tags $tags -count=1 -timeout 10m "$@" .
