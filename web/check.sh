#!/bin/sh
# Says whether dist is what the sources give: builds them in a temporary folder, with
# the packages of package-lock.json, and compares byte by byte. Needs Node from 20.19 on.
set -eu
cd "$(dirname "$0")"

if grep -n '"resolved"' package-lock.json; then
	echo "web/package-lock.json: it must name no registry; run npm in web/, whose .npmrc sees to that" >&2
	exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -c --exclude ./node_modules --exclude ./dist . | tar -x -C "$work"
(cd "$work" && npm ci --silent && npm run --silent build -- --logLevel warn)

if ! diff -r "$work/dist" dist; then
	echo "web/dist is not what the sources give: run make web and commit it" >&2
	exit 1
fi
echo "web/dist is up to date"
