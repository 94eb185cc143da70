package proto

//go:generate sh -c "cd .. && go tool -modfile=tools/go.mod buf lint && go tool -modfile=tools/go.mod buf generate"
