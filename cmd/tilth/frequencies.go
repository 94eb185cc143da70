package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

// parseCaps parses numbers joined by +, or returns nil for an empty text.
func parseCaps(text string) (caps []int64, err error) {
	if text == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, "+") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("want numbers from 1 on joined by +, such as 16+64+128")
		}
		caps = append(caps, n)
	}
	return caps, nil
}

// maxFrequenciesBytes bounds a file of frequencies.
const maxFrequenciesBytes = 16 << 20

// readFrequencies reads how often executions have each extent: lines of "EXTENT COUNT". It skips empty lines
// and lines that begin with #.
func readFrequencies(name string) (map[int64]float64, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > maxFrequenciesBytes {
		return nil, fmt.Errorf("%s: it has more than %d MiB, far more than a line for each extent", name, maxFrequenciesBytes>>20)
	}
	found := map[int64]float64{}
	lines := bufio.NewScanner(io.LimitReader(file, maxFrequenciesBytes))
	for k := 1; lines.Scan(); k++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) != 2 {
			return nil, fmt.Errorf("%s: line %d: want an extent and how often it occurs, such as '128 30'", name, k)
		}
		n, err := strconv.ParseInt(words[0], 10, 64)
		count, wrong := strconv.ParseFloat(words[1], 64)
		if err != nil || wrong != nil || n < 1 || !(count > 0) || count > math.MaxInt64 {
			return nil, fmt.Errorf("%s: line %d: want an extent from 1 on and how often it occurs, more than never, such as '128 30'", name, k)
		}
		found[n] += count
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: it has no lines such as '128 30', an extent and how often it occurs", name)
	}
	return found, nil
}
