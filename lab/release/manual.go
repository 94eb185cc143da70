package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// shells lists the supported shells with the conventional names of their completion files.
var shells = []struct{ shell, file string }{{"bash", "tilth.bash"}, {"zsh", "_tilth"}, {"fish", "tilth.fish"}}

// ask returns the output of a program for this machine's architecture, run without the user's settings.
func ask(ctx context.Context, program string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, program, args...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C"}
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("tilth %s: %w", strings.Join(args, " "), said(err))
	}
	return string(out), nil
}

// completions returns the shell completions.
func completions(ctx context.Context, program string) (files []file, err error) {
	for _, s := range shells {
		text, err := ask(ctx, program, "completion", s.shell)
		if err != nil {
			return nil, err
		}
		files = append(files, file{Name: s.file, Mode: 0o644, Data: []byte(text)})
	}
	return files, nil
}

// manual returns a man page for the program and each of its commands, made from their --help-all texts.
func (s *source) manual(ctx context.Context, program string) (files []file, err error) {
	listed, err := ask(ctx, program, "__complete", "")
	if err != nil {
		return nil, err
	}
	page := func(name, short string, args ...string) error {
		help, err := ask(ctx, program, append(args, "--help-all")...)
		if err != nil {
			return err
		}
		files = append(files, file{Name: name + ".1", Mode: 0o644, Data: []byte(s.page(name, short, help))})
		return nil
	}
	if err := page("tilth", "tune neural-network kernels on real devices"); err != nil {
		return nil, err
	}
	for line := range strings.Lines(listed) {
		name, short, is := strings.Cut(strings.TrimSpace(line), "\t")
		if !is {
			continue
		}
		if err := page("tilth-"+name, strings.ToLower(short[:1])+short[1:], name); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// page formats a help text as a man page.
func (s *source) page(name, short, help string) string {
	var out strings.Builder
	fmt.Fprintf(&out, ".TH %s 1 %s \"Tilth %s\" \"User Commands\"\n", strings.ToUpper(name), s.when.Format("2006-01-02"), s.version)
	fmt.Fprintf(&out, ".SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n", roff(name), roff(short))
	for line := range strings.Lines(help) {
		out.WriteString(roff(line))
	}
	out.WriteString(".fi\n")
	if name != "tilth" {
		out.WriteString(".SH SEE ALSO\n.BR tilth (1)\n")
	}
	return out.String()
}

// roff escapes a line of text for troff.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}
