#!/bin/sh
# Writes the Go and Python code of strategy.proto. Needs protoc (Debian's
# protobuf-compiler; its version decides which python3-protobuf can read the result).
set -eu
cd "$(dirname "$0")"
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
GOBIN=$bin go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
GOBIN=$bin go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
PATH=$bin:$PATH protoc --proto_path=. \
	--go_out=../strategypb --go_opt=paths=source_relative \
	--go-grpc_out=../strategypb --go-grpc_opt=paths=source_relative \
	--python_out=../python/evostrategy \
	strategy.proto
