package oidc

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/internal/access"
)

func TestSettingsAreRead(t *testing.T) {
	got, err := Parse(map[string]string{"issuer": "https://x.test/farm", "audience": "tilth", "role-claim": "roles", "owner-prefix": "sso:"},
		[]string{"cn=ml,ou=x=client", "a=admin"})
	check(t, err)
	want := Config{
		Issuer: "https://x.test/farm", Audience: "tilth", OwnerClaim: "sub", OwnerPrefix: "sso:", RoleClaim: "roles",
		Grants: []Grant{{"cn=ml,ou=x", access.Client}, {"a", access.Admin}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestInvalidSettingsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		other  map[string]string
		grants []string
		want   string
	}{
		"an unknown one":    {map[string]string{"isuer": "x"}, nil, `"isuer" is not one of audience, ca, issuer, owner-claim, owner-prefix, role-claim`},
		"no issuer":         {map[string]string{"issuer": ""}, nil, `issuer "": want a URL such as https://`},
		"one in the clear":  {map[string]string{"issuer": "http://x.test"}, nil, "want a URL such as https://"},
		"one with a query":  {map[string]string{"issuer": "https://x.test?a=b"}, nil, "want a URL without a query"},
		"one with a secret": {map[string]string{"issuer": "https://a:b@x.test"}, nil, "want a URL such as https://"},
		"no audience":       {map[string]string{"audience": ""}, nil, "audience is missing"},
		"no owner":          {map[string]string{"owner-claim": ""}, nil, "owner-claim is empty"},
		"no groups":         {map[string]string{"role-claim": ""}, nil, "role-claim is empty"},
		"a prefix in two":   {map[string]string{"owner-prefix": "a b"}, nil, "owner-prefix: name"},
		"no roles":          {nil, []string{}, "no group is given a role"},
		"half a grant":      {nil, []string{"admins"}, `grant "admins": want GROUP=ROLE`},
		"a grant to nobody": {nil, []string{"=admin"}, `grant "=admin": want GROUP=ROLE`},
		"a role of no farm": {nil, []string{"a=king"}, `grant "a=king": role "king" is not one of`},
		"too many grants":   {nil, strings.Split(strings.Repeat("a=admin ", maxGrants)+"a=admin", " "), "want at most 1024"},
	} {
		t.Run(name, func(t *testing.T) {
			named := map[string]string{"issuer": "https://x.test", "audience": "tilth"}
			maps.Copy(named, c.other)
			if c.grants == nil {
				c.grants = []string{"a=admin"}
			}
			_, err := Parse(named, c.grants)
			wantError(t, err, "", c.want)
		})
	}
}
