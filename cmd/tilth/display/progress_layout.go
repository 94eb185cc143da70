package display

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/internal/humanize"
)

// column is a column of the task table.
type column struct {
	// heading begins with '>' for a right-aligned column.
	heading string
	cell    func(t task, whole float64) string
	// rest is set if the cell is meaningful for several tasks together.
	rest bool
}

// layouts lists the columns beside the task's name, widest layout first.
var layouts = [][]column{
	{shareColumn, untunedColumn, bestColumn, gainColumn, rateColumn, ofLimitColumn, triedColumn, errorsColumn},
	{shareColumn, bestColumn, gainColumn, rateColumn, ofLimitColumn, triedColumn, failedColumn},
	{shareColumn, bestColumn, rateColumn, ofLimitColumn, triedColumn, failedColumn},
	{bestColumn, rateColumn, ofLimitColumn, triedColumn},
	{bestColumn, triedColumn},
}

var (
	shareColumn = column{">SHARE", func(t task, whole float64) string { return humanize.Percent(t.total, whole) }, true}
	bestColumn  = column{">BEST", func(t task, _ float64) string { return humanize.Seconds(t.best) }, false}
	gainColumn  = column{">SPEED-UP", func(t task, _ float64) string { return humanize.Ratio(t.untuned, t.best) }, false}
	rateColumn  = column{">GFLOP/s", func(t task, _ float64) string { return humanize.GFLOPS(t.flop, t.best) }, false}
	triedColumn = column{">TRIALS", func(t task, _ float64) string { return fmt.Sprint(t.trials) }, true}
	// Error classes if there is space, or else their number.
	errorsColumn  = column{"ERRORS", func(t task, _ float64) string { return t.errors }, true}
	failedColumn  = column{">FAILED", func(t task, _ float64) string { return fmt.Sprint(t.failed) }, true}
	untunedColumn = column{">UNTUNED", func(t task, _ float64) string { return humanize.Seconds(t.untuned) }, false}
	ofLimitColumn = column{"OF LIMIT", func(t task, _ float64) string { return t.ofLimit }, true}
)

const (
	// minName is the width of a task's name below which a narrower layout is used. minEver is its minimum
	// in the narrowest layout.
	minName, minEver = 26, 8
	// progressGap is the space between columns.
	progressGap = 2
)

// table renders tasks as lines of at most width columns, under headings. If summed, the last task stands for several.
func table(tasks []task, summed bool, whole float64, width int) []string {
	longest := 0
	for _, t := range tasks {
		longest = max(longest, humanize.Columns(t.name))
	}
	for i, columns := range layouts {
		cells := fill(tasks, summed, whole, columns)
		name := width - widthOf(cells)
		if name >= min(longest, minName) || i == len(layouts)-1 {
			return write(tasks, columns, cells, min(max(name, minEver), longest))
		}
	}
	return nil
}

// fill returns the cells of each task, by column.
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

// widthOf returns the total width of the columns with their gaps.
func widthOf(rows [][]string) (total int) {
	for c := range rows[0] {
		widest := 0
		for _, row := range rows {
			widest = max(widest, humanize.Columns(row[c]))
		}
		total += widest + progressGap
	}
	return total
}

func write(tasks []task, columns []column, cells [][]string, name int) []string {
	headings := []string{"TASK"}
	for _, c := range columns {
		headings = append(headings, c.heading)
	}
	out := humanize.NewTable(headings...)
	for i, t := range tasks {
		out.Row(append([]string{humanize.ElideMiddle(t.name, name)}, cells[i+1]...)...)
	}
	var text strings.Builder
	_ = out.Write(&text)
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// clip shortens text to a width in columns.
func clip(text string, width int) string {
	if humanize.Columns(text) <= width {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && humanize.Columns(string(runes)) > width-1 {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// pack distributes parts over as few lines as possible, two spaces apart, with at most width columns unless a
// single part is longer.
func pack(parts []string, width int) (lines []string) {
	for _, part := range parts {
		last := len(lines) - 1
		if last >= 0 && humanize.Columns(lines[last])+progressGap+humanize.Columns(part) <= width {
			lines[last] += "  " + part
		} else {
			lines = append(lines, part)
		}
	}
	return lines
}
