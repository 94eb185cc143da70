package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tilth-dev/tilth/internal/config"
	"github.com/tilth-dev/tilth/internal/humanize"
)

// Cobra's annotations of required and mutually exclusive flags.
const (
	requiredFlag   = cobra.BashCompOneRequiredFlag
	exclusiveFlags = "cobra_annotation_mutually_exclusive"
)

// rewordErrors rewords usage errors of a command and its subcommands.
func rewordErrors(c *cobra.Command) {
	check := c.Args
	if check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return argumentsError(c, args, err)
			}
			return flagsError(c)
		}
	}
	for _, sub := range c.Commands() {
		rewordErrors(sub)
	}
}

// argumentsError describes the expected arguments, unless the check already has. For a command with
// subcommands and no arguments, the first argument counts as an unknown subcommand.
func argumentsError(c *cobra.Command, args []string, err error) error {
	if errors.As(err, new(*usageError)) {
		return err
	}
	_, wanted, _ := strings.Cut(c.Use, " ")
	if wanted == "" && c.HasSubCommands() {
		return unknownCommand(c, args[0])
	}
	given := "none"
	if len(args) > 0 {
		given = strings.Trim(fmt.Sprintf("%q", args), "[]")
	}
	if wanted == "" {
		return fmt.Errorf("'%s' takes no arguments, but was given %s", c.CommandPath(), given)
	}
	return fmt.Errorf("'%s' wants %s, but was given %s", c.CommandPath(), wanted, given)
}

// flagsError reports missing or conflicting flags, or returns nil.
func flagsError(c *cobra.Command) error {
	var missing []string
	var conflict error
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if len(f.Annotations[requiredFlag]) > 0 && !f.Changed {
			missing = append(missing, "--"+f.Name)
		}
		for _, group := range f.Annotations[exclusiveFlags] {
			if given := givenOf(c.Flags(), strings.Fields(group)); len(given) > 1 {
				conflict = fmt.Errorf("%s are mutually exclusive: use only one", strings.Join(given, " and "))
			}
		}
	})
	if missing != nil {
		return fmt.Errorf("'%s' needs %s", c.CommandPath(), strings.Join(missing, " and "))
	}
	return conflict
}

// givenOf returns those of some flags that were given.
func givenOf(flags *pflag.FlagSet, names []string) (given []string) {
	for _, name := range names {
		if flags.Changed(name) {
			given = append(given, "--"+name)
		}
	}
	return given
}

// flagError rewords an error of parsing flags. A flag that no command has may belong to a mistyped subcommand.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && len(c.Flags().Args()) > 0 && c.HasSubCommands():
		return unknownCommand(c, c.Flags().Arg(0))
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		return fmt.Errorf("there is no flag --%s%s", unknown.GetSpecifiedName(), similarFlag(c, unknown.GetSpecifiedName()))
	case errors.As(err, &unknown):
		return fmt.Errorf("there is no flag -%s%s", unknown.GetSpecifiedName(), similarFlag(c, unknown.GetSpecifiedShortnames()))
	case errors.As(err, &bare):
		return fmt.Errorf("%s wants a value", flagNames(bare.GetFlag()))
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		if strings.HasPrefix(f.Value.Type(), "stringTo") {
			return fmt.Errorf("%s %.100q: want NAME=VALUE", flagNames(f), invalid.GetValue())
		}
		return fmt.Errorf("%s %w", flagNames(f), config.InvalidValue(f, invalid.GetValue(), errors.Unwrap(invalid)))
	}
	return err
}

// similarFlag returns a hint at the flag that a mistyped name most likely stands for.
func similarFlag(c *cobra.Command, name string) string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return humanize.DidYouMean("--", name, names)
}

// flagNames formats the names of a flag: -o/--output.
func flagNames(f *pflag.Flag) string {
	if f.Shorthand == "" {
		return "--" + f.Name
	}
	return "-" + f.Shorthand + "/--" + f.Name
}

// unknownCommand returns the error for an unknown subcommand.
func unknownCommand(c *cobra.Command, name string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return fmt.Errorf("unknown command %q for %q%s", name, c.CommandPath(), humanize.DidYouMean("", name, names))
}
