package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
)

// every is each nth folder of a folder.
func every(dir string, n int) (folders []string, err error) {
	entries, err := os.ReadDir(dir)
	for k, e := range entries {
		if k%n == 0 && e.IsDir() {
			folders = append(folders, filepath.Join(dir, e.Name()))
		}
	}
	return folders, err
}

// counted is how many cases came to what, of the lines of 'tilth check --json', and the first that failed.
func counted(lines []byte) (counts map[string]int, failure string) {
	counts = map[string]int{}
	scanner := bufio.NewScanner(bytes.NewReader(lines))
	for scanner.Scan() {
		var line struct{ Case, Status, Reason string }
		if json.Unmarshal(scanner.Bytes(), &line) != nil || line.Case == "" {
			continue
		}
		counts[line.Status]++
		if line.Status == "fail" && failure == "" {
			failure = line.Case + ": " + line.Reason
		}
	}
	return counts, failure
}
