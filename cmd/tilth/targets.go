package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/humanize"
)

// targetValue is the name of a target. Aliases are replaced when the flag is set.
type targetValue struct{ name *string }

// targetFlag adds --target, with native as the default.
func targetFlag(c *cobra.Command, name *string, use string) {
	*name = target.Here
	c.Flags().Var(targetValue{name}, "target", use+": native, a name that 'tilth targets' lists, or a JSON `file`")
}

// Set implements pflag.Value.
func (v targetValue) Set(text string) (err error) {
	*v.name, err = registry.Resolve(text)
	return err
}

// String implements pflag.Value.
func (v targetValue) String() string {
	if v.name == nil {
		return ""
	}
	return *v.name
}

// Type implements pflag.Value.
func (v targetValue) Type() string { return "target" }

func newTargets(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "targets", Short: "List the machines to compile for",
		Long: `List the values of --target, with other names for them. Case and underscores do not
matter: X86_64 is x86-64. A JSON file ('tilth devices list --json') describes a machine
without a name.`,
		Example: "  tilth targets\n  tilth compile resnet18.onnx --target raspberry-pi-4",
	}
	a.tableFlags(c)
	return a.leaf(c, func(context.Context, []string) error {
		table := humanize.NewTable("TARGET", "DESCRIPTION", "ALIASES").Whole("ALIASES")
		return list(a, registry.Targets(), table, func(t target.Named) []string {
			return []string{t.Name, t.Description, strings.Join(t.Aliases, ", ")}
		})
	})
}
