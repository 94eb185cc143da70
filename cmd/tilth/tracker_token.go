package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/access"
	"github.com/tilth-dev/tilth/internal/humanize"
)

// tokenLifetime is the default lifetime of a token.
const tokenLifetime = 365 * 24 * time.Hour

func newTrackerToken(a *app) *cobra.Command {
	return branch("token", "Create, list and revoke the tokens of callers",
		newTokenCreate(a), newTokenList(a), newTokenRevoke(a))
}

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
	c.Flags().StringVarP(&output, "output", "o", "", "`file` to write it to, for --token-file (default standard output)")
	return a.leaf(c, func(_ context.Context, args []string) (err error) {
		request.Name = args[0]
		if request.Role, err = access.ParseRole(role); err != nil {
			return usagef("--role: %w", err)
		}
		if err := access.CheckName(request.Name); err != nil {
			return usagef("%w", err)
		}
		if request.Lifetime < 0 || request.Retire < 0 {
			return usagef("--lifetime and --retire: want positive times")
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
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List tokens, oldest first",
		Example: "  tilth tracker token list --tokens tokens.json",
		Args:    cobra.NoArgs,
	}
	tokensFlag(c, &file)
	tableFlags(a, c, &asJSON)
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
		return list(a.stdout, asJSON, rows, table, func(r tokenRow) []string {
			expires := r.Expires
			if expires == "" {
				expires = humanize.Missing
			}
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
