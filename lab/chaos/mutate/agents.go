package mutate

import "slices"

// agents mutates promises 1, 5, 6 and 10 on agents, files and sandboxes.
var agents = slices.Concat(
	in("internal/agent", []mutation{
		{
			name: "heartbeats name no leases", file: "session.go",
			from: "&tilthv1.HeartbeatRequest{Session: s.id, Leases: s.tokens()}", to: "&tilthv1.HeartbeatRequest{Session: s.id}",
			test: "TestDroppedWorkIsToldToItsHandler",
		},
	}),
	in("internal/disk", []mutation{
		{
			name: "a file replaces another before it is on the disk", file: "write.go",
			from: "settle(f, info), f.Sync())", to: "settle(f, info))",
			test: "TestAFileThatWasWrittenOutlivesAPowerCut",
		},
	}),
	in("internal/sandbox", []mutation{
		{
			name: "a sandbox bounds no memory", file: "limits.go",
			from: "if l.MemoryBytes > 0 {", to: "if l.MemoryBytes < 0 {",
			test: "TestMeansAreBounded",
		},
		{
			name: "a sandbox bounds no open files", file: "limits.go",
			from: "if l.OpenFiles > 0 {", to: "if l.OpenFiles < 0 {",
			test: "TestMeansAreBounded",
		},
		{
			name: "a sandbox bounds no files", file: "limits.go",
			from: "if l.FileBytes > 0 {", to: "if l.FileBytes < 0 {",
			test: "TestMeansAreBounded",
		},
		{
			name: "a sandbox bounds no processor time", file: "limits.go",
			from: "if l.ProcessorTime > 0 {", to: "if l.ProcessorTime < 0 {",
			test: "TestMeansAreBounded",
		},
	}),
	in("internal/access/connlimit", []mutation{
		{
			name: "one address has any number of connections", file: "listener.go",
			from: "host != \"\" && l.hosts[host] == l.perHost", to: "host != \"\" && l.hosts[host] == 1000*l.perHost",
			test: "TestConnectionsAreBounded",
		},
		{
			name: "there is any number of connections", file: "listener.go",
			from: "if l.held == l.total ||", to: "if l.held == 1000*l.total ||",
			test: "TestConnectionsAreBounded",
		},
		{
			name: "a connection that ends is counted for ever", file: "listener.go",
			from: "\tl.held--\n", to: "",
			test: "TestConnectionsAreBounded",
		},
		{
			name: "compressed messages are inflated", file: "intake.go",
			from: "case i.prefix[0] != 0:", to: "case i.prefix[0] > 1:",
			test: "TestACompressedMessageIsNotInflated",
		},
	}),
)
