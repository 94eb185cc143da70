package main

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	// flagLine matches the start of a flag's description: names, optional value type, and text.
	flagLine = regexp.MustCompile(`^ {2,6}((?:-\w, )?--[\w-]+)(?: (\S+))?(?: {2,}(.*))?$`)
	// commandLine matches a subcommand in a list.
	commandLine = regexp.MustCompile(`^  ([a-z][a-z0-9-]*) +(\S.*)$`)
	// inText matches flags, environment variables and quoted commands in running text.
	inText = regexp.MustCompile(`'tilth [^']*'|--[a-z][a-z-]*|\$?[A-Z]+_[A-Z_]+`)
)

// markdownOf converts a command's help to Markdown.
func markdownOf(c command) string {
	text, rest, _ := strings.Cut("\n"+c.help, "\nUsage:\n")
	var out strings.Builder
	out.WriteString(running(text))
	fmt.Fprintf(&out, "```console\n%s", strings.TrimSuffix(usageOf(rest), "\n"))
	out.WriteString("\n```\n")
	for _, s := range sectionsOf(rest) {
		fmt.Fprintf(&out, "\n**%s**\n\n%s", s.title, s.markdown(c))
	}
	out.WriteString("\n")
	return out.String()
}

// usageOf returns the lines before the first section.
func usageOf(rest string) string {
	usage, _, _ := strings.Cut(rest, "\n\n")
	return unindented(usage)
}

// section is a titled section of the help.
type section struct {
	title string
	lines []string
}

// sectionsOf returns the sections after a command's usage.
func sectionsOf(rest string) (all []section) {
	_, rest, _ = strings.Cut(rest, "\n\n")
	for line := range strings.Lines(rest) {
		line = strings.TrimRight(line, "\n")
		if line != "" && !strings.HasPrefix(line, " ") {
			if strings.HasPrefix(line, "More of a command:") {
				break
			}
			all = append(all, section{title: strings.TrimSuffix(line, ":")})
		} else if len(all) > 0 {
			all[len(all)-1].lines = append(all[len(all)-1].lines, line)
		}
	}
	return all
}

// markdown formats a section as code, a list of commands or a table of flags.
func (s section) markdown(c command) string {
	body := strings.TrimRight(strings.Join(s.lines, "\n"), "\n")
	if s.title == "Examples" {
		return "```console\n" + unindented(body) + "\n```\n"
	}
	if len(s.lines) > 0 && flagLine.MatchString(s.lines[0]) {
		return flagTable(s.lines)
	}
	var out strings.Builder
	for _, line := range s.lines {
		if m := commandLine.FindStringSubmatch(line); m != nil && m[1] != "help" {
			fmt.Fprintf(&out, "- [%s %s](%s): %s\n", c.name, m[1], linkTo(c, m[1]), running(m[2])[:len(running(m[2]))-2])
		}
	}
	return out.String()
}

// linkTo returns a link to a subcommand: from the list to a page, or within a page to a section.
func linkTo(c command, name string) string {
	if c.name == "tilth" {
		return "commands/" + name + ".md"
	}
	return "#" + strings.ReplaceAll(c.name, " ", "-") + "-" + name
}

// flagTable formats a table of flags. Lines that start no flag continue the previous one.
func flagTable(lines []string) string {
	var rows [][2]string
	for _, line := range lines {
		if m := flagLine.FindStringSubmatch(line); m != nil {
			name := "`" + m[1] + "`"
			if m[2] != "" {
				name += " *" + m[2] + "*"
			}
			rows = append(rows, [2]string{name, m[3]})
		} else if text := strings.TrimSpace(line); text != "" && len(rows) > 0 {
			rows[len(rows)-1][1] = strings.TrimSpace(rows[len(rows)-1][1] + " " + text)
		}
	}
	var out strings.Builder
	out.WriteString("| flag | meaning |\n|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&out, "| %s | %s |\n", escaped(r[0]), strings.TrimSpace(running(r[1])))
	}
	return out.String()
}

// running converts paragraphs of plain text to Markdown. Indented text becomes code.
func running(text string) string {
	var out strings.Builder
	for paragraph := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		if strings.HasPrefix(paragraph, " ") {
			out.WriteString("```console\n" + unindented(paragraph) + "\n```\n\n")
			continue
		}
		out.WriteString(inText.ReplaceAllStringFunc(escaped(paragraph), func(word string) string {
			return "`" + strings.ReplaceAll(strings.Trim(word, "'"), `\`, "") + "`"
		}) + "\n\n")
	}
	return out.String()
}

// escaped escapes Markdown's special characters.
func escaped(text string) string {
	return strings.NewReplacer("<", "&lt;", "|", `\|`, "[", `\[`).Replace(text)
}

// unindented removes the leading two spaces of lines.
func unindented(text string) string {
	return strings.TrimPrefix(strings.ReplaceAll("\n"+text, "\n  ", "\n"), "\n")
}
