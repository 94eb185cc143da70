package mutate

import "slices"

// rates mutates promise 8 on call rates.
var rates = slices.Concat(
	in("internal/access/authorisation", []mutation{
		{
			name: "an identity calls any number of times", file: "rate.go",
			from: "\tb.calls--\n", to: "",
			test: "TestCallsOfAnIdentityAreBounded",
		},
		{
			name: "who calls too often is asked back too soon", file: "rate.go",
			from: "(1-b.calls)/b.perSecond*", to: "(1-b.calls)/b.burst*",
			test: "TestCallsOfAnIdentityAreBounded",
		},
		{
			name: "a pause earns any number of calls", file: "rate.go",
			from: "b.calls = min(b.burst, b.calls+passed*b.perSecond)", to: "b.calls += passed * b.perSecond",
			test: "TestCallsOfAnIdentityAreBounded",
		},
		{
			name: "sessions add nothing to their identity's calls", file: "rate.go",
			from: "g.cfg.CallsPerSecond + callsPerSession*", to: "g.cfg.CallsPerSecond + 0*",
			test: "TestSessionsAddToTheCallsOfTheirIdentity",
		},
		{
			name: "calls that are written down are bounded like others", file: "rate.go",
			from: "max(g.ofIdentity(c, now), g.ofWritten(c, now))", to: "g.ofIdentity(c, now)",
			test: "TestCallsThatAreWrittenDownAreBoundedMore",
		},
		{
			name: "a host has the calls of all its addresses", file: "rate.go",
			from: "netip.PrefixFrom(ip, 64)", to: "netip.PrefixFrom(ip, 128)",
			test: "TestStrangersAreBoundedByTheirAddress",
		},
		{
			name: "strangers call any number of times", file: "rate.go",
			from: "case host == \"\":", to: "case host == \"\" || c.rule.public:",
			test: "TestStrangersAreBoundedByTheirAddress",
		},
		{
			name: "any number of callers is remembered", file: "rate.go",
			from: "r.buckets == nil || len(r.buckets) >= mostBuckets {", to: "r.buckets == nil {",
			test: "TestWhatIsRememberedOfCallersIsBounded",
		},
		{
			name: "any number of a caller's refusals is written down", file: "refusal_limiter.go",
			from: "if s.counts[key] == s.perKey ||", to: "if s.counts[key] == 1000*s.perKey ||",
			test: "TestRefusalsOfAKnownCallerAreWrittenUpToABound",
		},
	}),
	[]mutation{
		{
			name: "who calls too often does not hear when to come again", file: "internal/access/authorisation/rate.go",
			from: "wire.RefuseUntil(wait, codes.ResourceExhausted,", to: "wire.Refuse(codes.ResourceExhausted,",
			pkg: "./tracker", test: "TestWhoCallsTooOftenIsPutOff",
		},
		{
			name: "who is put off gives up", file: "internal/retry/retry.go",
			from: "if deadline, bounded := ctx.Deadline(); wait == 0 ||", to: "if deadline, bounded := ctx.Deadline(); wait > 0 ||",
			pkg: "./internal/retry", test: "TestCallsThatArePutOffAreMadeAgainWithinTheirTime",
		},
		{
			name: "who is put off is back at once", file: "internal/retry/retry.go",
			from: "return wait + rand.N(wait+time.Millisecond)", to: "return min(wait, rand.N(time.Millisecond)+1)",
			pkg: "./internal/retry", test: "TestWhatIsPutOffIsTriedAgainNoSoonerThanItSays",
		},
	},
)
