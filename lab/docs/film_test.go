package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// text returns the characters of a screen without colours.
func text(lines [][]cell) string {
	var out strings.Builder
	for _, line := range lines {
		for _, c := range line {
			out.WriteRune(c.char)
		}
		out.WriteString("\n")
	}
	return out.String()
}

func TestAScreenShowsWhatIsWritten(t *testing.T) {
	for name, c := range map[string]struct{ written, want string }{
		"lines":                    {"a\r\nb\r\n", "a\nb\n\n"},
		"a line over another":      {"abc\rd\x1b[K", "d\n"},
		"up, and the rest erased":  {"a\r\nb\r\n\r\x1b[1Ax\x1b[K\r\n\x1b[J", "a\nx\n\n"},
		"a line that is too long":  {"abcdefgh", "abcde\nfgh\n"},
		"more lines than it has":   {"1\r\n2\r\n3\r\n4\r\n5", "3\n4\n5\n"},
		"colours":                  {"\x1b[31mé\x1b[0m", "é\n"},
		"nothing where it did not": {"\r\n\r\nc", "\n\nc\n"},
	} {
		s := &screen{columns: 5, height: 3}
		for _, b := range []byte(c.written) { // byte by byte: sequences may arrive in pieces
			if err := s.write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		if got := text(s.lines); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	s := &screen{columns: 5, height: 3}
	if err := s.write([]byte("\x1b[5n")); err == nil {
		t.Error("an unknown sequence is passed over")
	}
}

func TestFramesAreTakenEvenly(t *testing.T) {
	var shown []piece
	for n := range 100 {
		shown = append(shown, piece{time.Duration(n) * time.Second, []byte{'\r', byte('0' + n%10)}})
	}
	frames, err := sample(shown, 20, 5, 10)
	if err != nil || len(frames) > 10 || text(frames[len(frames)-1].lines) != "9\n" {
		t.Errorf("%d frames, %v", len(frames), err)
	}
}

func TestAProgramIsFilmed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.svg")
	if err := makeFilm(t.Context(), []string{"-o", file, "sh", "-c", `printf 'a <b>  \033[32mc\033[0m\n'; [ -t 0 ] && [ -t 1 ] && echo terminal`}); err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a &lt;b&gt;</text>", `class="c32">c</text>`, ">terminal</text>", "prefers-reduced-motion"} {
		if !strings.Contains(string(picture), want) {
			t.Errorf("the picture lacks %s", want)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(string(picture))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := makeFilm(t.Context(), []string{"-o", file, "false"}); err == nil {
		t.Error("a program that fails is filmed")
	}
}
