// Command transport says what of a tracker's tail is its transport's: it serves a farm's calls with nothing behind
// them. Agents, each with a connection, wait for work, report and send heartbeats as those of tilth simulate do, in
// messages of the same sizes; the server, a process of its own, hands work from those who make it to those who wait
// for it, and every answer is a constant.
//
//	go run ./lab/bench/transport -devices 10000 -rate 20000 -time 12s      every variant, one after the other
//	go run ./lab/bench/transport -variants grpc,lean -rounds 2             two of them, twice, in turns
//	go run ./lab/bench/transport -variants grpc -profile grpc.pprof        and what the server's processor time is spent on
//
// It writes a row of a table for each run. The profile is of the time that is measured, and of what follows until the
// server ends: the collection after which objects are counted, and the agents' parting.
package main
