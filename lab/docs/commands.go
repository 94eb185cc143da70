package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// command is a command of the program with its subcommands.
type command struct {
	// name is the full name, such as tilth jobs list.
	name, short, help string
	below             []command
}

// commandPages returns a list of all commands, and a page for each top-level command.
func commandPages(ctx context.Context, program string) (map[string]string, error) {
	root, err := ask(ctx, program, command{name: "tilth"})
	if err != nil {
		return nil, err
	}
	pages := map[string]string{}
	pages["commands.md"] = "# Commands\n\nThe output of `--help-all` for each command of this version.\n\n" + markdownOf(root)
	for _, c := range root.below {
		name := strings.TrimPrefix(c.name, "tilth ")
		var page strings.Builder
		writeCommand(&page, c, 1)
		pages["commands/"+name+".md"] = page.String()
	}
	return pages, nil
}

// ask fills in the help of a command and its subcommands.
func ask(ctx context.Context, program string, c command) (command, error) {
	path := strings.Fields(c.name)[1:]
	var err error
	if c.help, err = output(ctx, program, append(path, "--help-all")...); err != nil {
		return c, err
	}
	if !strings.Contains(c.help, c.name+" COMMAND\n") {
		return c, nil
	}
	listed, err := output(ctx, program, append(append([]string{"__complete"}, path...), "")...)
	if err != nil {
		return c, err
	}
	for line := range strings.Lines(listed) {
		name, short, is := strings.Cut(strings.TrimSpace(line), "\t")
		if !is || name == "help" || strings.HasPrefix(name, "-") {
			continue
		}
		sub, err := ask(ctx, program, command{name: c.name + " " + name, short: short})
		if err != nil {
			return c, err
		}
		c.below = append(c.below, sub)
	}
	if c.below == nil {
		return c, errors.New(c.name + " lists no commands")
	}
	return c, nil
}

// output runs the program without the user's settings and returns its output.
func output(ctx context.Context, program string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, program, args...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C"}
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("tilth %s: %w; make build makes the program", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// writeCommand writes a command and its subcommands, with headings from a level on.
func writeCommand(page *strings.Builder, c command, level int) {
	fmt.Fprintf(page, "%s %s\n\n", strings.Repeat("#", level), c.name)
	page.WriteString(markdownOf(c))
	for _, sub := range c.below {
		writeCommand(page, sub, 2)
	}
}
