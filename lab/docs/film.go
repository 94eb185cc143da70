package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// maxBytes is the maximum size of a film, because it is in the repository and on its front page.
const maxBytes = 300 << 10

// makeFilm runs a program in a terminal and records it as an animated SVG, which only uses CSS. Long runs are sped up.
// Viewers who prefer reduced motion see the last frame.
//
// usage: docs film -o FILE.svg [-columns N] [-lines N] [-seconds N] PROGRAM [ARGUMENT ...]
func makeFilm(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("film", flag.ContinueOnError)
	out := flags.String("o", "", "file for the picture")
	columns := flags.Uint("columns", 100, "columns of the terminal")
	lines := flags.Uint("lines", 28, "lines of the terminal")
	seconds := flags.Float64("seconds", 20, "how long the film takes until its last frame")
	frames := flags.Int("frames", 50, "how many frames it has at most")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 || *out == "" || *columns < 20 || *lines < 5 || *columns > 300 || *lines > 100 || *seconds <= 0 || *frames < 2 {
		return errors.New("name a file, and a program to run in a terminal of a usual size")
	}
	shown, err := record(ctx, int(*columns), int(*lines), flags.Args())
	if err != nil {
		return err
	}
	command := append([]string{filepath.Base(flags.Arg(0))}, flags.Args()[1:]...)
	taken, err := sample(shown, int(*columns), int(*lines), *frames)
	if err != nil {
		return err
	}
	picture := draw(taken, strings.Join(command, " "), int(*columns), int(*lines), *seconds)
	if len(picture) > maxBytes {
		return fmt.Errorf("the picture has %d bytes, which is more than %d: take fewer -frames or -lines", len(picture), maxBytes)
	}
	return os.WriteFile(*out, []byte(picture), 0o644)
}
