package mutate

// closed mutates promise 9 on permissions. Its tests are the tracker's, over real gRPC.
var closed = []mutation{
	{
		name: "a job is anybody's to delete while its owner cannot be looked up", file: "internal/access/authorisation/gate.go",
		from: "owner, is, err := g.cfg.Holdings.JobOwner(id)", to: "owner, is, _ := g.cfg.Holdings.JobOwner(id); var err error",
		pkg: "./tracker", test: "TestAJobWhoseOwnerIsNotKnownIsNobodysToDelete",
	},
	{
		name: "anybody ends anybody's job", file: "internal/access/authorisation/gate.go",
		from: "!is || owner.Name == c.caller.Name {", to: "!is || owner.Name != \"\" {",
		pkg: "./tracker", test: "TestAJobBelongsToWhoSubmittedIt",
	},
	{
		name: "anybody speaks for anybody's session", file: "internal/access/authorisation/gate.go",
		from: "s.Identity != c.caller.Name {", to: "s.Identity == \"\" {",
		pkg: "./tracker", test: "TestASessionBelongsToWhoJoined",
	},
	{
		name: "a role may call everything", file: "internal/access/authorisation/gate.go",
		from: "if !slices.Contains(c.rule.roles, c.caller.Role) {", to: "if !slices.Contains(c.rule.roles, c.caller.Role) && c.rule.roles == nil {",
		pkg: "./tracker", test: "TestEveryRoleMayCallWhatTheTableSays",
	},
	{
		name: "a token that was revoked is good until its stream ends", file: "internal/access/authorisation/stream.go",
		from: "if s.call.caller.valid == nil {", to: "if s.call.caller.valid != nil {",
		pkg: "./tracker", test: "TestARevokedTokenEndsItsStreams",
	},
	{
		name: "a token that an issuer made for somebody else is one for the farm", file: "internal/access/oidc/verifier.go",
		from: "AnyAudience: jwt.Audience{v.cfg.Audience}, ", to: "",
		pkg: "./internal/access/oidc", test: "TestTokensThatProveNothingAreRefused",
	},
	{
		name: "a token outlives its issuer's key", file: "internal/access/oidc/verifier.go",
		from: "if !v.keys.has(t.key) {", to: "if t.key == nil {",
		pkg: "./internal/access/oidc", test: "TestKeysAreRotated",
	},
	{
		name: "an issuer that fails takes its keys along", file: "internal/access/oidc/keyring.go",
		from: "return r.times.retry", to: "r.keys = nil\n\t\treturn r.times.retry",
		pkg: "./internal/access/oidc", test: "TestAnIssuerThatFailsBreaksNoKnownKeys",
	},
	{
		name: "what cannot be written down happens all the same", file: "internal/access/authorisation/gate.go",
		from: "if c.rule.log != audited {", to: "if c.rule.log == audited {",
		pkg: "./tracker", test: "TestNothingIsChangedThatCannotBeWrittenDown",
	},
}
