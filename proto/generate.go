package proto

//go:generate sh -c "cd .. && go tool -modfile=lab/tools/go.mod buf lint && go tool -modfile=lab/tools/go.mod buf generate && go tool -modfile=lab/tools/go.mod buf build --path proto/tilth/v1 --exclude-imports --exclude-source-info -o python/tilth/wire.binpb"
