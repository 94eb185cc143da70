package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpColumns is the width that lines of help have at most.
const helpColumns = 99

// flagSections are the sections in which the flags of a command are explained, in this order; flags that are in none
// of them come first, as Flags.
var flagSections = []struct {
	title string
	flags []string
}{
	{"What kernels may do", []string{"numerics", "storage", "weights", "max-error", "check"}},
	{"Retries and silent agents", []string{
		"lease-timeout", "grace", "max-attempts", "max-stall", "outage-wait", "search-turn", "calibrate-every", "drift-quarantine", "drift-remeasure", "noise-quarantine",
	}},
	{"Shares and quotas of owners", []string{
		"max-jobs", "max-trials", "max-artifacts", "max-stored", "owner-max-artifacts", "owner-max-jobs", "owner-max-stored", "owner-max-trials", "owner-weight",
	}},
	{"Limits of calls", []string{
		"max-calls-per-second", "max-connections", "max-connections-per-host", "max-request-mib", "max-streams", "max-upload-space", "max-uploads",
	}},
	{"What is kept", []string{
		"artifact-space", "artifacts", "backup-dir", "backup-every", "backup-keep", "backup-keep-for", "keep-artifacts", "keep-jobs", "scrub-rate",
	}},
	{"The farm", []string{"tracker", "wait", "device", "priority", "private"}},
	{"Security", []string{
		"insecure", "http-insecure", "oidc", "oidc-role", "tls-ca", "tls-cert", "tls-client-ca", "tls-key", "token-file", "tokens", "audit-keep", "audit-log", "audit-max-bytes",
	}},
	{"Output and help", []string{"json", "wide", "quiet", "log", "plot", "log-level", "config", "config-check", "help"}},
}

// usage writes how a command is called.
func usage(c *cobra.Command) error {
	var out strings.Builder
	out.WriteString("Usage:\n")
	if !c.HasAvailableSubCommands() || hasFlags(c) {
		fmt.Fprintf(&out, "  %s\n", c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&out, "  %s COMMAND\n", c.CommandPath())
	}
	if c.HasExample() {
		fmt.Fprintf(&out, "\nExamples:\n%s\n", c.Example)
	}
	usageOfCommands(&out, c)
	usageOfFlags(&out, c.Flags())
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&out, "\nMore of a command: %s COMMAND --help\n", c.CommandPath())
	}
	_, err := io.WriteString(c.OutOrStdout(), out.String())
	return err
}

// hasFlags says whether a command has flags beside those that all have.
func hasFlags(c *cobra.Command) (has bool) {
	c.Flags().VisitAll(func(f *pflag.Flag) { has = has || f.Name != "help" && f.Name != "version" })
	return has
}

// usageOfCommands lists the commands below one, by group.
func usageOfCommands(out *strings.Builder, c *cobra.Command) {
	rest := "Commands:"
	if len(c.Groups()) > 0 {
		rest = "Other commands:"
	}
	groups := append(slices.Clone(c.Groups()), &cobra.Group{Title: rest})
	for _, group := range groups {
		var lines []string
		for _, sub := range c.Commands() {
			if sub.GroupID == group.ID && (sub.IsAvailableCommand() || sub.Name() == "help") {
				lines = append(lines, fmt.Sprintf("  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short))
			}
		}
		if lines != nil {
			fmt.Fprintf(out, "\n%s\n%s", group.Title, strings.Join(lines, ""))
		}
	}
}

// usageOfFlags explains flags, section by section.
func usageOfFlags(out *strings.Builder, all *pflag.FlagSet) {
	sections := make([]*pflag.FlagSet, len(flagSections)+1)
	titles := []string{"Flags"}
	for i := range sections {
		sections[i] = pflag.NewFlagSet("", pflag.ContinueOnError)
	}
	for _, s := range flagSections {
		titles = append(titles, s.title)
	}
	all.VisitAll(func(f *pflag.Flag) {
		shown := *f
		if strings.HasPrefix(f.Value.Type(), "stringTo") && f.DefValue == "[]" {
			shown.DefValue = "" // pflag leaves out empty lists, and not empty maps
		}
		sections[sectionOf(f.Name)].AddFlag(&shown)
	})
	for i, section := range sections {
		if section.HasAvailableFlags() {
			const slop = 5 // by so much pflag lets a line's last word stick out
			fmt.Fprintf(out, "\n%s:\n%s", titles[i], section.FlagUsagesWrapped(helpColumns-slop))
		}
	}
}

// sectionOf is the number of a flag's section; 0 for those in none.
func sectionOf(flag string) int {
	for i, s := range flagSections {
		if slices.Contains(s.flags, flag) {
			return i + 1
		}
	}
	return 0
}
