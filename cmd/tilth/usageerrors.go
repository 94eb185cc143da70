package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
	var own *usageError
	if errors.As(err, &own) {
		return err
	}
	_, wanted, _ := strings.Cut(c.Use, " ")
	if wanted == "" && c.HasSubCommands() {
		return unknownCommand(c, args[0])
	}
	given := "none"
	if len(args) > 0 {
		given = quoted(args)
	}
	if wanted == "" {
		return fmt.Errorf("'%s' takes no arguments, but was given %s", c.CommandPath(), given)
	}
	return fmt.Errorf("'%s' wants %s, but was given %s", c.CommandPath(), wanted, given)
}

// quoted returns arguments in quotes, because they may contain blanks.
func quoted(args []string) string {
	var words []string
	for _, arg := range args {
		words = append(words, strconv.Quote(arg))
	}
	return strings.Join(words, " ")
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
				conflict = fmt.Errorf("%s exclude each other: give one of them", strings.Join(given, " and "))
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

// flagError rewords an error of parsing flags.
func flagError(_ *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		return fmt.Errorf("there is no flag --%s", unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		return fmt.Errorf("there is no flag -%s", unknown.GetSpecifiedName())
	case errors.As(err, &bare):
		return fmt.Errorf("%s wants a value", flagNames(bare.GetFlag()))
	}
	return err
}

// flagNames formats the names of a flag: -o/--output.
func flagNames(f *pflag.Flag) string {
	if f.Shorthand == "" {
		return "--" + f.Name
	}
	return "-" + f.Shorthand + "/--" + f.Name
}

// suggestionSeparator separates cobra's error from its list of similar commands.
const suggestionSeparator = "\n\nDid you mean this?\n"

// usageMessage formats a usage error on one line.
func usageMessage(c *cobra.Command, err error) string {
	text, similar, found := strings.Cut(err.Error(), suggestionSeparator)
	if found {
		text += ": did you mean " + strings.Join(strings.Fields(similar), " or ") + "?"
	}
	return fmt.Sprintf("%s (see '%s --help')", oneLine(errors.New(text)), c.CommandPath())
}

// suggestedWithin is the maximum edit distance of suggested commands, like cobra's.
const suggestedWithin = 2

// unknownCommand returns the error for an unknown subcommand, in cobra's words for the root command.
func unknownCommand(c *cobra.Command, name string) error {
	c.SuggestionsMinimumDistance = max(c.SuggestionsMinimumDistance, suggestedWithin)
	text := fmt.Sprintf("unknown command %q for %q", name, c.CommandPath())
	if similar := c.SuggestionsFor(name); len(similar) > 0 {
		text += suggestionSeparator + strings.Join(similar, " ")
	}
	return errors.New(text)
}
