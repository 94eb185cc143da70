package mutate

import "slices"

// exchanged mutates promise 1 on records from other farms, files and servers.
var exchanged = slices.Concat(
	in("records/exchange", []mutation{
		{
			name: "a group with other records is passed over", file: "sync.go",
			from: "more && other == s", to: "more && other.Group == s.Group",
			test: "TestAnExchangeThatIsInterruptedGoesOn",
		},
		{
			name: "what a peer says is not validated", file: "batch.go",
			from: "if err := b.incoming.Admit(r); err != nil {", to: "if err := b.incoming.Admit(r); err != nil && r == nil {",
			test: "TestWhatAPeerSaysIsValidatedAsAnImportIs",
		},
		{
			name: "the last batch is not sent", file: "sync.go",
			from: "return b.report, b.flush(ctx)", to: "return b.report, nil",
			test: "TestAnExchangeThatIsKilledGoesOn",
		},
	}),
	in("records/static", []mutation{
		{
			name: "a chunk may have another digest", file: "chunk.go",
			from: "n != c.SizeBytes || hex.EncodeToString(digest.Sum(nil)) != c.Digest", to: "n < 0",
			test: "TestAServerThatIsWrongIsRefusedInOneLine",
		},
		{
			name: "a chunk may be longer than the index says", file: "chunk.go",
			from: "left: c.ContentBytes}", to: "left: c.ContentBytes << 20}",
			test: "TestWhatAnExportSaysIsValidated",
		},
		{
			name: "a server may send readers to another one", file: "server.go",
			from: "to.URL.Scheme != s.base.Scheme || to.URL.Host != s.base.Host", to: "to.URL == nil",
			test: "TestAServerThatIsWrongIsRefusedInOneLine",
		},
	}),
)
