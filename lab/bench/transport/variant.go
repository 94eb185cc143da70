package main

import (
	"fmt"
	"slices"
	"strings"
)

// variant is a way in which agents and the server talk.
type variant struct {
	name string
	way  way
	// stream has an agent ask for all its work in one call; otherwise each piece of work is a call's answer.
	stream bool
	// opaque leaves what is long in messages undecoded, and has it encoded beforehand.
	opaque bool
	// share is how many agents have a connection together.
	share int
	// silent is the share of the devices that send heartbeats only.
	silent float64
}

// way is how a server serves connections.
type way string

const (
	overGRPC way = "grpc" // grpc.Server.Serve
	overHTTP way = "http" // net/http, with grpc.Server as its handler
	overLean way = "lean" // gRPC's protocol, with as little as it needs
)

// variants are those that are measured, in this order.
var variants = []variant{
	{name: "grpc", way: overGRPC, share: 1},
	{name: "http", way: overHTTP, share: 1},
	{name: "stream", way: overGRPC, share: 1, stream: true},
	{name: "opaque", way: overGRPC, share: 1, opaque: true},
	{name: "silent", way: overGRPC, share: 1, silent: 0.8},
	{name: "shared-10", way: overGRPC, share: 10},
	{name: "shared-100", way: overGRPC, share: 100},
	{name: "lean", way: overLean, share: 1},
}

// chosen are the variants of these names, with commas between.
func chosen(names string) (list []variant, err error) {
	for name := range strings.SplitSeq(names, ",") {
		at := slices.IndexFunc(variants, func(v variant) bool { return v.name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no variant %q: choose from %s", name, allNames())
		}
		list = append(list, variants[at])
	}
	return list, nil
}

func allNames() string {
	names := make([]string, len(variants))
	for i, v := range variants {
		names[i] = v.name
	}
	return strings.Join(names, ",")
}
