package bench

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/internal/humanize"
)

// Table is a table in Markdown.
type Table struct {
	head string
	rows strings.Builder
}

// NewTable returns a table with headings, separated by " | ". Columns whose heading begins with ">" are aligned right.
func NewTable(headings string) *Table {
	rule := ""
	for heading := range strings.SplitSeq(headings, " | ") {
		if rule += "---"; strings.HasPrefix(heading, ">") {
			rule = strings.TrimSuffix(rule, "-") + ":"
		}
		rule += "|"
	}
	return &Table{head: "| " + strings.ReplaceAll(strings.TrimPrefix(headings, ">"), "| >", "| ") + " |\n|" + rule + "\n"}
}

// Rowf adds a row, with its cells separated by " | ".
func (t *Table) Rowf(format string, args ...any) {
	fmt.Fprintf(&t.rows, "| "+format+" |\n", args...)
}

// Comment adds a comment, which is not shown, after the last row.
func (t *Table) Comment(text string) { fmt.Fprintf(&t.rows, "<!-- %s -->\n", text) }

// Write writes a paragraph, unless it is empty, and the table after it. It writes nothing if the table has no rows.
func (t *Table) Write(out *strings.Builder, title string) {
	if t.rows.Len() == 0 {
		return
	}
	if title != "" {
		out.WriteString("\n" + title + "\n")
	}
	out.WriteString("\n" + t.head + t.rows.String())
}

// Known formats a figure, or a dash if it is not positive, which means unknown.
func Known(v float64, format func(float64) string) string {
	if v <= 0 {
		return humanize.Missing
	}
	return format(v)
}

// Times formats a ratio.
func Times(v float64) string { return fmt.Sprintf("%.2f", v) }

// Percent formats a share.
func Percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

// Threads formats a number of threads.
func Threads(n int) string {
	if n == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", n)
}
