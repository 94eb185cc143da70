// Package proto is where the wire's Go code is generated from; the code itself is in tilth/v1.
package proto

//go:generate sh -c "cd .. && go tool -modfile=tools/go.mod buf lint && go tool -modfile=tools/go.mod buf generate"
