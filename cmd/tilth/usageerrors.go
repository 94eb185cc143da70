package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The annotations by which cobra knows the flags that must be given, and those of which only one may be.
const (
	requiredFlag   = cobra.BashCompOneRequiredFlag
	exclusiveFlags = "cobra_annotation_mutually_exclusive"
)

// wordErrors has a command and those below it say in our words what is wrong with the way in which they are called.
func wordErrors(c *cobra.Command) {
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
		wordErrors(sub)
	}
}

// argumentsError says which arguments a command wants, unless what checked them has said it. Of a command with others
// below it that takes none, the first is taken for the name of one of these.
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

// quoted are arguments, each in quotes: they may have blanks.
func quoted(args []string) string {
	var words []string
	for _, arg := range args {
		words = append(words, strconv.Quote(arg))
	}
	return strings.Join(words, " ")
}

// flagsError says which flags are missing, or exclude each other; nil when that is well.
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

// givenOf are those of some flags that were given.
func givenOf(flags *pflag.FlagSet, names []string) (given []string) {
	for _, name := range names {
		if flags.Changed(name) {
			given = append(given, "--"+name)
		}
	}
	return given
}

// flagError words an error of reading flags.
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

// flagNames is a flag as it may be given: -o/--output.
func flagNames(f *pflag.Flag) string {
	if f.Shorthand == "" {
		return "--" + f.Name
	}
	return "-" + f.Shorthand + "/--" + f.Name
}

// suggesting is the line before which cobra says what is wrong, and behind which it lists similar commands.
const suggesting = "\n\nDid you mean this?\n"

// misuse is the line that says what is wrong with the way in which a command was called.
func misuse(c *cobra.Command, err error) string {
	text, similar, found := strings.Cut(err.Error(), suggesting)
	if found {
		text += ": did you mean " + strings.Join(strings.Fields(similar), " or ") + "?"
	}
	return fmt.Sprintf("%s (see '%s --help')", oneLine(errors.New(text)), c.CommandPath())
}

// suggestedWithin is how many letters of a command's name may be wrong, as in cobra's own suggestions.
const suggestedWithin = 2

// unknownCommand says that there is no such command below one, as cobra says it of the root.
func unknownCommand(c *cobra.Command, name string) error {
	c.SuggestionsMinimumDistance = max(c.SuggestionsMinimumDistance, suggestedWithin)
	text := fmt.Sprintf("unknown command %q for %q", name, c.CommandPath())
	if similar := c.SuggestionsFor(name); len(similar) > 0 {
		text += suggesting + strings.Join(similar, " ")
	}
	return errors.New(text)
}
