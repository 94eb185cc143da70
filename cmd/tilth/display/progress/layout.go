package progress

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/internal/show"
)

// column is a figure of a task.
type column struct {
	// heading begins with '>' where the column is flush right.
	heading string
	cell    func(t task, whole float64) string
	// rest says that the cell means something for several tasks together.
	rest bool
}

// layouts are the columns beside the task's name, the widest first.
var layouts = [][]column{
	{shareColumn, untunedColumn, bestColumn, gainColumn, rateColumn, ofLimitColumn, triedColumn, errorsColumn},
	{shareColumn, bestColumn, gainColumn, rateColumn, ofLimitColumn, triedColumn, failedColumn},
	{shareColumn, bestColumn, rateColumn, ofLimitColumn, triedColumn, failedColumn},
	{bestColumn, rateColumn, ofLimitColumn, triedColumn},
	{bestColumn, triedColumn},
}

var (
	shareColumn = column{">SHARE", func(t task, whole float64) string { return show.Percent(t.total, whole) }, true}
	bestColumn  = column{">BEST", func(t task, _ float64) string { return show.Seconds(t.best) }, false}
	gainColumn  = column{">SPEED-UP", func(t task, _ float64) string { return show.Ratio(t.untuned, t.best) }, false}
	rateColumn  = column{">GFLOP/s", func(t task, _ float64) string { return show.GFLOPS(t.flop, t.best) }, false}
	triedColumn = column{">TRIALS", func(t task, _ float64) string { return fmt.Sprint(t.trials) }, true}
	// The classes of the errors where there is space for them, else their number.
	errorsColumn  = column{"ERRORS", func(t task, _ float64) string { return t.errors }, true}
	failedColumn  = column{">FAILED", func(t task, _ float64) string { return fmt.Sprint(t.failed) }, true}
	untunedColumn = column{">UNTUNED", func(t task, _ float64) string { return show.Seconds(t.untuned) }, false}
	ofLimitColumn = column{"OF LIMIT", func(t task, _ float64) string { return t.ofLimit }, true}
)

const (
	// leastName is what a task's name gets before a narrower layout is taken, leastEver what the narrowest leaves it.
	leastName, leastEver = 26, 8
	// gap is the space between columns.
	gap = 2
)

// table is tasks as lines of at most width columns, under headings. The last of the tasks stands for several, if
// summed.
func table(tasks []task, summed bool, whole float64, width int) []string {
	longest := 0
	for _, t := range tasks {
		longest = max(longest, show.Columns(t.name))
	}
	for i, columns := range layouts {
		cells := fill(tasks, summed, whole, columns)
		name := width - widthOf(cells)
		if name >= min(longest, leastName) || i == len(layouts)-1 {
			return write(tasks, columns, cells, min(max(name, leastEver), longest))
		}
	}
	return nil
}

// fill has the cells of each task, by columns.
func fill(tasks []task, summed bool, whole float64, columns []column) [][]string {
	rows := [][]string{nil}
	for _, c := range columns {
		rows[0] = append(rows[0], strings.TrimPrefix(c.heading, ">"))
	}
	for i, t := range tasks {
		var row []string
		for _, c := range columns {
			if cell := ""; summed && i == len(tasks)-1 && !c.rest {
				row = append(row, cell)
			} else {
				row = append(row, c.cell(t, whole))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// widthOf is how wide all columns are together, with the gaps before them.
func widthOf(rows [][]string) (total int) {
	for c := range rows[0] {
		widest := 0
		for _, row := range rows {
			widest = max(widest, show.Columns(row[c]))
		}
		total += widest + gap
	}
	return total
}

func write(tasks []task, columns []column, cells [][]string, name int) []string {
	headings := []string{"TASK"}
	for _, c := range columns {
		headings = append(headings, c.heading)
	}
	out := show.NewTable(headings...)
	for i, t := range tasks {
		out.Row(append([]string{show.ElideMiddle(t.name, name)}, cells[i+1]...)...)
	}
	var text strings.Builder
	_ = out.Write(&text)
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// clip cuts text to a width in columns.
func clip(text string, width int) string {
	if show.Columns(text) <= width {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && show.Columns(string(runes)) > width-1 {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// pack puts parts on as few lines as will do, two spaces between them, in lines of at most width columns where a part
// is not longer.
func pack(parts []string, width int) (lines []string) {
	for _, part := range parts {
		last := len(lines) - 1
		if last >= 0 && show.Columns(lines[last])+gap+show.Columns(part) <= width {
			lines[last] += "  " + part
		} else {
			lines = append(lines, part)
		}
	}
	return lines
}
