package show

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Table is rows under headings, aligned when written. A heading that begins with '>' sets its column flush right.
type Table struct {
	right []bool
	rows  [][]string
}

// NewTable makes a table with these columns.
func NewTable(headings ...string) *Table {
	t := &Table{}
	row := make([]string, len(headings))
	for i, h := range headings {
		row[i] = strings.TrimPrefix(h, ">")
		t.right = append(t.right, strings.HasPrefix(h, ">"))
	}
	t.rows = append(t.rows, row)
	return t
}

// Row adds a row; cells that are left out are empty. What is not printable is shown as a blank: a cell is one line,
// and others may have worded it.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = strings.Map(printable, cell)
	}
	t.rows = append(t.rows, row)
}

func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return ' '
}

// Write writes the table, two spaces between columns and none at the ends of lines.
func (t *Table) Write(w io.Writer) error {
	widths := make([]int, len(t.right))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.right[i] {
				line.WriteString(gap + cell + "  ")
			} else {
				line.WriteString(cell + gap + "  ")
			}
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}
