package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpColumns is the maximum width of help text. Examples may be wider, because a command line must not be wrapped.
const helpColumns = 80

// flagSections lists the titled sections of a command's flags, in the order of the help text. Flags without a section
// come first, under "Flags". Only --help-all shows the sections marked rare.
var flagSections = []struct {
	title string
	rare  bool
	flags []string
}{
	{"Numerics", false, []string{"numerics", "storage", "weights", "max-error", "check"}},
	{"Retries and timeouts", true, []string{
		"lease-timeout", "grace", "max-attempts", "max-stall", "outage-wait", "search-turn", "calibrate-every", "drift-quarantine", "drift-remeasure", "noise-quarantine",
	}},
	{"Shares and quotas of owners", true, []string{
		"max-jobs", "max-trials", "max-artifacts", "max-stored", "owner-max-artifacts", "owner-max-jobs", "owner-max-stored", "owner-max-trials", "owner-weight",
	}},
	{"Limits of calls", true, []string{
		"max-calls-per-second", "max-connections", "max-connections-per-host", "max-request-mib", "max-streams", "max-upload-space", "max-uploads",
	}},
	{"Storage and backups", false, []string{
		"artifact-space", "artifacts", "backup-dir", "backup-every", "backup-keep", "backup-keep-for", "keep-artifacts", "keep-jobs", "scrub-rate",
	}},
	{"Farm", false, []string{"tracker", "wait", "device", "priority", "private"}},
	{"Security", false, []string{
		"insecure", "http-insecure", "oidc", "oidc-role", "tls-ca", "tls-cert", "tls-client-ca", "tls-key", "token-file", "tokens", "audit-keep", "audit-log", "audit-max-bytes",
	}},
	{"Output and help", false, []string{"json", "wide", "quiet", "log", "plot", "log-level", "config", "config-check", "help"}},
}

// rareFlags lists, by command, the flags that only --help-all shows.
var rareFlags = map[string][]string{
	"tilth tune": {
		"board", "compiler", "cost-model", "early-stop", "from", "kernels", "log-level", "name", "no-transfer", "no-wait", "objective", "plot", "priority", "private",
		"sandbox", "seed", "set", "storage", "task-weights", "tls-ca", "tls-cert", "tls-key", "to", "token-file", "tuner", "weight", "weights", "wide",
	},
	"tilth jobs submit": {
		"compiler", "early-stop", "from", "kernels", "log-level", "name", "no-transfer", "objective", "priority", "private", "seed", "set", "storage", "task-weights",
		"tls-ca", "tls-cert", "tls-key", "to", "token-file", "tuner", "weight", "weights",
	},
	"tilth compile": {
		"allow-http", "compiler", "confirm", "cost-model", "format", "from", "kernels", "log-level", "max-error", "max-flash", "max-ram", "max-size", "no-cache", "no-wait",
		"locked", "objective", "own-kernels", "prefix", "set", "storage", "tls-ca", "tls-cert", "tls-key", "to", "token-file", "unchecked-indices", "untuned", "verify-key", "weights",
	},
	"tilth run": {"cpus", "emulator", "limit", "log-level", "no-wait", "tls-ca", "tls-cert", "tls-key", "token-file", "verify-key", "wide"},
	"tilth runner": {
		"cache", "calibrate", "config-check", "drain", "emulator", "http", "http-insecure", "meter", "slots", "tls-cert", "tls-key",
		"update-downgrade", "update-every", "update-key", "update-trial", "config", "log-level",
	},
	"tilth tracker": {
		"advertise", "artifact-space", "artifacts", "audit-keep", "audit-log", "audit-max-bytes", "backup-dir", "backup-every", "backup-keep",
		"backup-keep-for", "config", "config-check", "insecure", "keep-artifacts", "keep-jobs", "log-level", "oidc", "oidc-role", "releases", "scrub-rate",
		"shards", "tls-client-ca",
	},
	"tilth records sync": {"allow-http", "log-level", "tls-ca", "tls-cert", "tls-key", "token-file", "from-tls-ca", "from-tls-cert", "from-tls-key", "from-token-file", "shape", "weights"},
	"tilth tasks":        {"from", "schedule", "set", "storage", "to", "weights", "wide"},
}

// helpAllFlag is the name of the flag that explains the rare flags, too.
const helpAllFlag = "help-all"

// helpDetails annotates a command with the part of its description that only --help-all shows.
const helpDetails = "tilth_help_details"

// helpAll is the value of --help-all. Setting it sets --help, which ends the command before its arguments are checked.
type helpAll struct{ flags *pflag.FlagSet }

// Set implements pflag.Value.
func (h *helpAll) Set(string) error { return h.flags.Set("help", "true") }

// String implements pflag.Value.
func (h *helpAll) String() string { return "false" }

// Type implements pflag.Value.
func (h *helpAll) Type() string { return "bool" }

// addHelpAll adds --help-all to a command and to its subcommands.
func addHelpAll(c *cobra.Command) {
	c.InitDefaultHelpFlag()
	f := c.Flags().VarPF(&helpAll{flags: c.Flags()}, helpAllFlag, "", "help with all flags")
	f.NoOptDefVal = "true"
	for _, sub := range c.Commands() {
		addHelpAll(sub)
	}
}

// showsAll reports whether --help-all was given.
func showsAll(c *cobra.Command) bool {
	f := c.Flags().Lookup(helpAllFlag)
	return f != nil && f.Changed
}

// isRare reports whether only --help-all shows a flag of a command.
func isRare(c *cobra.Command, flag string) bool {
	section := sectionOf(flag)
	return section > 0 && flagSections[section-1].rare || slices.Contains(rareFlags[c.CommandPath()], flag)
}

// help writes the description and the usage of a command.
func help(c *cobra.Command, _ []string) {
	text := cmp.Or(c.Long, c.Short)
	if details := c.Annotations[helpDetails]; details != "" && showsAll(c) {
		text += "\n\n" + details
	}
	if text != "" {
		fmt.Fprintf(c.OutOrStdout(), "%s\n\n", wrapText(strings.TrimSpace(text), helpColumns))
	}
	if c.Runnable() || c.HasSubCommands() {
		fmt.Fprint(c.OutOrStdout(), c.UsageString())
	}
}

// wrapText breaks the lines of paragraphs at a width. Paragraphs with indented lines stay as they are.
func wrapText(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, paragraph := range paragraphs {
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") {
			continue
		}
		var lines []string
		line := ""
		for _, word := range strings.Fields(paragraph) {
			if line != "" && len(line)+1+len(word) > width {
				lines, line = append(lines, line), ""
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		paragraphs[i] = strings.Join(append(lines, line), "\n")
	}
	return strings.Join(paragraphs, "\n\n")
}

// usage writes how to call a command.
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
	left := usageOfFlags(&out, c)
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&out, "\nMore of a command: %s COMMAND --help\n", c.CommandPath())
	}
	if left > 0 {
		fmt.Fprintf(&out, "\nMore details and %d rarely used flags: %s --%s\n", left, c.CommandPath(), helpAllFlag)
	}
	_, err := io.WriteString(c.OutOrStdout(), out.String())
	return err
}

// hasFlags reports whether a command has flags other than those for help and version.
func hasFlags(c *cobra.Command) (has bool) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		has = has || !slices.Contains([]string{"help", helpAllFlag, "version"}, f.Name)
	})
	return has
}

// usageOfCommands lists the subcommands of a command by group.
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

// usageOfFlags explains the flags of a command by section. It returns the number of flags that it left out.
func usageOfFlags(out *strings.Builder, c *cobra.Command) (left int) {
	sections := make([]*pflag.FlagSet, len(flagSections)+1)
	titles := []string{"Flags"}
	for i := range sections {
		sections[i] = pflag.NewFlagSet("", pflag.ContinueOnError)
	}
	for _, s := range flagSections {
		titles = append(titles, s.title)
	}
	all := showsAll(c)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden || f.Name == helpAllFlag: // the last line names --help-all
			return
		case !all && isRare(c, f.Name):
			left++
			return
		}
		shown := *f
		emptyMap := strings.HasPrefix(f.Value.Type(), "stringTo") && f.DefValue == "[]"
		if emptyMap || f.DefValue == "0s" && strings.Contains(f.Usage, "(default ") {
			shown.DefValue = ""
		}
		sections[sectionOf(f.Name)].AddFlag(&shown)
	})
	for i, section := range sections {
		if section.HasAvailableFlags() {
			const slop = 5 // pflag lets the last word of a line exceed the width by this much
			fmt.Fprintf(out, "\n%s:\n%s", titles[i], section.FlagUsagesWrapped(helpColumns-slop))
		}
	}
	return left
}

// sectionOf returns the index of a flag's section plus one, or 0 for a flag without one.
func sectionOf(flag string) int {
	for i, s := range flagSections {
		if slices.Contains(s.flags, flag) {
			return i + 1
		}
	}
	return 0
}
