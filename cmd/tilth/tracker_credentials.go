package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/humanize"
)

// tokenLifetime is the default lifetime of a token.
const tokenLifetime = 365 * 24 * time.Hour

// tokensFlag adds --tokens.
func tokensFlag(c *cobra.Command, path *string) {
	c.Flags().StringVar(path, "tokens", "", "the tracker's `file` of tokens")
	_ = c.MarkFlagRequired("tokens") // it only fails for an unknown flag
}

func newTokenCreate(a *app) *cobra.Command {
	var file, role, output string
	var request access.TokenRequest
	c := &cobra.Command{
		Use: "create NAME", Short: "Make a token and print it; it is shown only now",
		Long: `Make a token and print it; it is shown only now.

NAME identifies a person or a machine. It owns the jobs submitted and the sessions
opened with the token. A running tracker accepts the token immediately. To replace a
token, create another one with the same name, distribute it, and let the earlier ones
expire (--retire) or revoke them.`,
		Example: `  tilth tracker token create alice --role client --tokens tokens.json
  tilth tracker token create board-7 --role agent --tokens tokens.json -o board-7.token
  tilth tracker token create board-7 --role agent --tokens tokens.json -o board-7.token \
    --retire 24h`,
		Args: cobra.ExactArgs(1),
	}
	tokensFlag(c, &file)
	c.Flags().StringVar(&role, "role", "", "what it is for: read-only, client, agent or admin")
	_ = c.MarkFlagRequired("role")
	c.Flags().DurationVar(&request.Lifetime, "lifetime", tokenLifetime, "how long it is valid; 0 = for ever")
	c.Flags().DurationVar(&request.Retire, "retire", 0, "have earlier tokens of the name expire after this time")
	atLeast(c, 0, "lifetime", "retire")
	c.Flags().StringVarP(&output, "output", "o", "", "`file` to write it to, for --token-file (default standard output)")
	return a.leaf(c, func(_ context.Context, args []string) (err error) {
		request.Name = args[0]
		if request.Role, err = access.ParseRole(role); err != nil {
			return usagef("--role: %w", err)
		}
		if err := access.CheckName(request.Name); err != nil {
			return usagef("%w", err)
		}
		text, _, err := access.CreateToken(file, request, time.Now())
		if err != nil {
			return err
		}
		if output == "" {
			_, err := fmt.Fprintln(a.stdout, text)
			return err
		}
		return a.writePrivate(output, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, text)
			return err
		})
	})
}

// tokenRow is a token in a listing.
type tokenRow struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Role    string `json:"role"`
	State   string `json:"state"`
	Created string `json:"created_at"`
	Expires string `json:"expires_at,omitempty"`
}

func newTokenRow(t access.Token, now time.Time) tokenRow {
	row := tokenRow{ID: t.ID, Name: t.Name, Role: string(t.Role), State: "valid", Created: t.Created.Format(time.RFC3339)}
	if t.Expired(now) {
		row.State = "expired"
	}
	if !t.Expires.IsZero() {
		row.Expires = t.Expires.Format(time.RFC3339)
	}
	return row
}

func newTokenList(a *app) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "list", Short: "List tokens, oldest first",
		Example: "  tilth tracker token list --tokens tokens.json",
	}
	tokensFlag(c, &file)
	a.tableFlags(c)
	return a.leaf(c, func(context.Context, []string) error {
		set, err := access.ReadTokens(file)
		if err != nil {
			return err
		}
		var rows []tokenRow
		for _, t := range set.Tokens {
			rows = append(rows, newTokenRow(t, time.Now()))
		}
		table := humanize.NewTable("ID", "NAME", "ROLE", "STATE", "CREATED", "EXPIRES").Times("CREATED", "EXPIRES").States("STATE")
		return list(a, rows, table, func(r tokenRow) []string {
			expires := cmp.Or(r.Expires, humanize.Missing)
			return []string{r.ID, r.Name, r.Role, r.State, r.Created, expires}
		})
	})
}

func newTokenRevoke(a *app) *cobra.Command {
	var file, name string
	c := &cobra.Command{
		Use: "revoke [ID...]", Short: "Revoke tokens, at once",
		Long:    "Revoke tokens, by their IDs or all of a name. A running tracker refuses them from their\nnext message on.",
		Example: "  tilth tracker token revoke q3f7aaaa --tokens tokens.json\n  tilth tracker token revoke --name alice --tokens tokens.json",
		Args:    cobra.ArbitraryArgs,
	}
	tokensFlag(c, &file)
	c.Flags().StringVar(&name, "name", "", "all tokens of this `name`")
	return a.leaf(c, func(_ context.Context, ids []string) error {
		if (name == "") == (len(ids) == 0) {
			return usagef("name the IDs of tokens, or a --name")
		}
		gone, err := access.RevokeTokens(file, func(t access.Token) bool { return slices.Contains(ids, t.ID) || name != "" && t.Name == name })
		for _, t := range gone {
			fmt.Fprintf(a.stdout, "revoked %s of %s\n", t.ID, t.Name)
		}
		return err
	})
}

func newTrackerCerts(a *app) *cobra.Command {
	var dir string
	var clients map[string]string
	var order certs.Order
	c := &cobra.Command{
		Use: "certs", Short: "Make a farm's certificates: an authority's, the tracker's, and those of callers",
		Long: `Make a farm's certificates: an authority's, the tracker's, and those of callers.

The authority (ca.crt, ca.key) is created if it is missing, and signs the others.
Callers need ca.crt for --tls-ca. A certificate of --client NAME=ROLE identifies a
caller without a token; the roles are read-only, client, agent and admin. Keep ca.key
secret: it can create any identity. A running tracker and its callers reload renewed
files without a restart.`,
		Example: `  tilth tracker certs --dir certs --host tracker.example.com,10.0.0.5
  tilth tracker certs --dir certs --client alice=admin --client board-7=agent
  tilth tracker --listen :9190 --tls-cert certs/tracker.crt --tls-key certs/tracker.key \
    --tls-client-ca certs/ca.crt`,
	}
	c.Flags().StringVar(&dir, "dir", ".", "`folder` of the certificates")
	c.Flags().StringSliceVar(&order.Hosts, "host", nil, "make tracker.crt and tracker.key for these host `names` and addresses, and for localhost")
	c.Flags().StringToStringVar(&clients, "client", nil, "make NAME.crt and NAME.key for a caller `NAME=ROLE`")
	c.Flags().DurationVar(&order.Lifetime, "lifetime", certs.LeafLifetime, "how long they are valid; an authority is for 10 years")
	atLeast(c, 1, "lifetime")
	return a.leaf(c, func(context.Context, []string) error {
		order.Clients = map[string]access.Role{}
		for name, text := range clients {
			role, err := access.ParseRole(text)
			if err != nil {
				return usagef("--client %s: %w", name, err)
			}
			order.Clients[name] = role
		}
		made, err := order.Make(dir, time.Now())
		for _, file := range made {
			fmt.Fprintln(a.stdout, file)
		}
		return err
	})
}
