package mutate

import "slices"

// sizes mutates promise 8 on requests: the bounds of their fields and their memory in transit.
var sizes = slices.Concat(
	in("internal/wire", []mutation{
		{
			name: "a field has no line in the table", file: "bounds_table.go",
			from: "\t\"tilth.v1.Measurement.message\":                     {bytes: messageBytes},\n", to: "",
			test: "TestEveryFieldOfEveryRequestHasABound",
		},
		{
			name: "texts are longer than their bound", file: "bounds_check.go",
			from: "if len(value) > f.bytes {", to: "if len(value) > 2*f.bytes {",
			test: "TestEveryBoundIsKept",
		},
		{
			name: "texts keep their control characters", file: "bounds_check.go",
			from: "\t\t\tblank(value)\n", to: "",
			test: "TestTextsHaveNoControlCharacters",
		},
		{
			name: "lists are longer than their bound", file: "bounds_check.go",
			from: "counts[f.counted] <= f.items {", to: "counts[f.counted] <= f.items || f.list {",
			test: "TestEveryBoundIsKept",
		},
		{
			name: "texts of a list are not counted", file: "bounds_check.go",
			from: "\t\tif f.list {\n\t\t\tif fault", to: "\t\tif f.list && f.items == 0 {\n\t\t\tif fault",
			test: "TestEveryBoundIsKept",
		},
		{
			name: "what messages hold is not looked at", file: "bounds_check.go",
			from: "return f.within(f.message.check(value), counts)", to: "return nil",
			test: "TestAFaultNamesItsFieldItsSizeAndItsBound",
		},
		{
			name: "numbers that come one by one are not counted", file: "bounds_check.go",
			from: "if f != nil && f.list {", to: "if f != nil && f.list && f.items == 0 {",
			test: "TestNumbersOfAListAreCountedHoweverTheyCome",
		},
		{
			name: "a message in parts grows past all bounds", file: "bounds_plan.go",
			from: "f.items = 1\n", to: "f.items = 1000\n",
			test: "TestAMessageThatComesInPartsIsRefused",
		},
	}),
	[]mutation{
		{
			name: "a tracker decodes what breaks a bound", file: "internal/access/connlimit/receive.go",
			from: "if c.check != nil {", to: "if c.check != nil && in.fault != nil {",
			pkg: "./tracker", test: "TestALongMessageOfABuilderIsRefused",
		},
		{
			name: "a method's messages are bounded like all", file: "tracker/security.go",
			from: "MessageBytes: wire.RequestBytes(method)", to: "MessageBytes: 0 * bounds.RequestBytes(method)",
			pkg: "./tracker", test: "TestAMessageBeyondItsMethodsBoundIsRefusedByATracker",
		},
	},
	in("internal/access/connlimit", []mutation{
		{
			name: "a method's bound is looked at when its message is there", file: "guard.go",
			from: "most: cmp.Or(a.MessageBytes, l.MessageBytes)", to: "most: cmp.Or(l.MessageBytes, a.MessageBytes)",
			test: "TestAMessageBeyondItsMethodsBoundIsRefusedBeforeItComes",
		},
		{
			name: "a message that comes in parts takes no room", file: "intake.go",
			from: "i.came += bytes", to: "i.came = bytes",
			test: "TestUnfinishedMessagesTakeAConnectionsShareAtMost",
		},
		{
			name: "a connection has all of the room", file: "room.go",
			from: "*t.conn+bytes > perConn ||", to: "bytes > perConn ||",
			test: "TestUnfinishedMessagesTakeAConnectionsShareAtMost",
		},
		{
			name: "a caller has all of the room", file: "room.go",
			from: "t.caller != \"\" && own+bytes > perCaller ||", to: "t.caller == \"\" && own+bytes > perCaller ||",
			test: "TestRoomIsSharedByCallersAndConnections",
		},
		{
			name: "there is room without end", file: "room.go",
			from: "r.held+bytes > r.total ||", to: "bytes > r.total ||",
			test: "TestRoomIsSharedByCallersAndConnections",
		},
		{
			name: "room that is given back is gone", file: "room.go",
			from: "r.add(t, -bytes)", to: "r.add(t, 0)",
			test: "TestRoomIsSharedByCallersAndConnections",
		},
		{
			name: "strangers have the room of callers who are known", file: "room.go",
			from: "perConn, perCaller = strangerConnBytes, strangerHostBytes", to: "perConn, perCaller = r.perConn, r.perCaller",
			test: "TestStrangersHaveNextToNoRoom",
		},
		{
			name: "all strangers together have all of the room", file: "room.go",
			from: "r.strangers+bytes > strangersBytes {", to: "r.strangers+bytes > 1000*strangersBytes {",
			test: "TestStrangersHaveNextToNoRoom",
		},
		{
			name: "a stream takes the room of all its messages", file: "intake.go",
			from: "kept := min(i.came, i.window+i.longest+prefixBytes)", to: "kept := i.came",
			test: "TestAStreamOfManyMessagesTakesTheRoomOfOne",
		},
		{
			name: "a part of a message belongs to whatever call", file: "frames.go",
			from: "call := f.calls[f.stream]", to: "call := f.calls[1]",
			test: "TestCallsAreToldApartHoweverTheyAreCut",
		},
		{
			name: "what was made counts for nobody", file: "answer.go",
			from: "a.buffered += bytes", to: "a.buffered += 0 * bytes",
			test: "TestAnswersThatNobodyReadsTakeAConnectionsShareAtMost",
		},
		{
			name: "making an answer takes no room", file: "answer.go",
			from: "if a == nil || a.most == 0 {", to: "if a == nil || a.most >= 0 {",
			test: "TestAnswersAreMadeWithinTheRoomForThem",
		},
		{
			name: "an answer may lie unread for ever", file: "answer.go",
			from: "time.AfterFunc(u.limit, u.end)", to: "time.AfterFunc(1000*u.limit, u.end)",
			test: "TestPeersThatMisbehaveAreDropped",
		},
	}),
)
