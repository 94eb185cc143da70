#!/bin/bash
# Generates the Go code of the wire and of the store's rows, the OpenAPI description, and Python's descriptors.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
GOBIN=$bin go install -modfile=lab/tools/wire/go.mod tool

export PATH=$bin:$PATH
configuration=grpc_api_configuration=proto/http.yaml
protoc -I proto proto/tilth/v1/*.proto \
	--go_out=proto --go_opt=paths=source_relative \
	--go-grpc_out=proto --go-grpc_opt=paths=source_relative \
	--grpc-gateway_out=proto --grpc-gateway_opt=paths=source_relative,$configuration \
	--openapiv2_out=tracker/web/api \
	--openapiv2_opt=$configuration,openapi_configuration=proto/openapi.yaml,allow_merge=true,merge_file_name=tilth,omit_enum_default_value=true \
	--descriptor_set_out=python/tilth/wire.binpb
# The gateway's files call the package a reverse proxy; doc.go describes it.
sed -i '/^\/\*$/,/^\*\/$/d' proto/tilth/v1/*.pb.gw.go
protoc -I proto proto/tilth/store/v1/*.proto --go_out=proto --go_opt=paths=source_relative
