module github.com/tilth-dev/tilth/lab/docs

go 1.26.0

require (
	github.com/bufbuild/protocompile v0.14.1
	go.yaml.in/yaml/v3 v3.0.6
	golang.org/x/net v0.62.0
	google.golang.org/protobuf v1.36.12
)

require golang.org/x/sync v0.8.0 // indirect
