package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// cell is a character with its ANSI colour; 0 is the default.
type cell struct {
	char   rune
	colour int
}

// frame is the content of a terminal from a time on.
type frame struct {
	at    time.Duration
	lines [][]cell
}

// screen is a terminal emulator for Tilth's output.
type screen struct {
	columns, height int
	lines           [][]cell
	row, column     int
	colour          int
	rest            []byte // an incomplete sequence or character
}

// sequence matches a control sequence: its numbers and its command.
var sequence = regexp.MustCompile(`^\x1b\[([0-9;?]*)([A-Za-z])`)

// settled is how long the screen must be unchanged for a frame, because it is drawn in pieces.
const settled = 20 * time.Millisecond

// sample replays output and returns at most a number of frames, evenly spaced. The last one is the final screen.
func sample(shown []piece, columns, lines, most int) (frames []frame, err error) {
	if len(shown) == 0 {
		return nil, fmt.Errorf("the program shows nothing")
	}
	s := &screen{columns: columns, height: lines}
	every := shown[len(shown)-1].at / time.Duration(most-1)
	for n, p := range shown {
		if err := s.write(p.text); err != nil {
			return nil, err
		}
		last := n == len(shown)-1
		if !last && shown[n+1].at-p.at < settled {
			continue
		}
		if last || len(frames) == 0 || p.at-frames[len(frames)-1].at >= every {
			frames = append(frames, frame{p.at, s.copy()})
		}
	}
	return frames, nil
}

func (s *screen) copy() (lines [][]cell) {
	for _, line := range s.lines {
		lines = append(lines, slices.Clone(line))
	}
	return lines
}

// write processes output.
func (s *screen) write(text []byte) error {
	text = append(s.rest, text...)
	s.rest = nil
	for len(text) > 0 {
		if text[0] == 0x1b {
			m := sequence.FindSubmatch(text)
			if m == nil && len(text) < 16 {
				break
			}
			if m == nil {
				return fmt.Errorf("the terminal knows no sequence that begins with %q", text[:16])
			}
			if err := s.control(string(m[1]), m[2][0]); err != nil {
				return err
			}
			text = text[len(m[0]):]
			continue
		}
		if !utf8.FullRune(text) {
			break
		}
		char, size := utf8.DecodeRune(text)
		s.put(char)
		text = text[size:]
	}
	s.rest = bytes.Clone(text)
	return nil
}

// put shows a character or moves the cursor.
func (s *screen) put(char rune) {
	switch char {
	case '\r':
		s.column = 0
		return
	case '\n':
		s.down()
		return
	}
	if s.column == s.columns {
		s.column = 0
		s.down()
	}
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
	for len(s.lines[s.row]) <= s.column {
		s.lines[s.row] = append(s.lines[s.row], cell{char: ' '})
	}
	s.lines[s.row][s.column] = cell{char, s.colour}
	s.column++
}

// down moves the cursor to the next line and scrolls if necessary.
func (s *screen) down() {
	s.row++
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
	if s.row == s.height {
		s.lines, s.row = s.lines[1:], s.row-1
	}
}

// control executes a sequence: up, erase to the end of the line or screen, and colours.
func (s *screen) control(numbers string, what byte) error {
	n, _ := strconv.Atoi(numbers)
	switch {
	case what == 'A':
		s.row = max(s.row-max(n, 1), 0)
	case what == 'K' && n == 0:
		if s.row < len(s.lines) && s.column < len(s.lines[s.row]) {
			s.lines[s.row] = s.lines[s.row][:s.column]
		}
	case what == 'J' && n == 0:
		if err := s.control("", 'K'); err != nil {
			return err
		}
		s.lines = s.lines[:min(len(s.lines), s.row+1)]
	case what == 'm':
		s.colour = n
	default:
		return fmt.Errorf("the terminal knows no sequence ESC [ %s %c", numbers, what)
	}
	return nil
}
