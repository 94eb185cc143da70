package main

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/show"
)

// jsonFlag adds --json.
func jsonFlag(c *cobra.Command, asJSON *bool) {
	c.Flags().BoolVar(asJSON, "json", false, "print JSON for scripts")
}

// tableFlags adds the flags of commands that print tables: --json and --wide.
func tableFlags(a *app, c *cobra.Command, asJSON *bool) {
	jsonFlag(c, asJSON)
	c.Flags().BoolFunc("wide", "on a terminal: do not shorten tables and times", func(text string) error {
		wide, err := strconv.ParseBool(text)
		if wide {
			a.wide()
		}
		return err
	})
}

// writeJSON writes a value as indented JSON.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// list writes rows as JSON or as a table.
func list[T any](w io.Writer, asJSON bool, rows []T, table *show.Table, row func(T) []string) error {
	if asJSON {
		if rows == nil {
			rows = []T{}
		}
		return writeJSON(w, rows)
	}
	for _, r := range rows {
		table.Row(row(r)...)
	}
	return table.Write(w)
}
