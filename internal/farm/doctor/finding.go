package doctor

import (
	"fmt"
	"io/fs"
	"strings"
)

// State says how it is with one thing.
type State string

// States of findings.
const (
	// Well needs no attention.
	Well State = "well"
	// Costly lets tuning go on, at a cost.
	Costly State = "costs"
	// Prevents makes tuning impossible.
	Prevents State = "prevents"
	// Unknown is what this machine does not show.
	Unknown State = "not known"
)

// Finding is what was found of one thing.
type Finding struct {
	Check string `json:"check"`
	State State  `json:"state"`
	// Found is what there is, in a few words.
	Found string `json:"found"`
	// Cost is what follows when that is not well, and Remedy what helps.
	Cost   string `json:"cost,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// Failure names all that prevents tuning; nil when nothing does.
func Failure(findings []Finding) error {
	var causes []string
	for _, f := range findings {
		if f.State == Prevents {
			causes = append(causes, f.Check+": "+f.Found)
		}
	}
	if causes == nil {
		return nil
	}
	return fmt.Errorf("this machine cannot tune: %s", strings.Join(causes, "; "))
}

// judged is a finding that is well, or has this cost and remedy.
func judged(check, found string, well bool, cost, remedy string) Finding {
	if well {
		return Finding{Check: check, State: Well, Found: found}
	}
	return Finding{Check: check, State: Costly, Found: found, Cost: cost, Remedy: remedy}
}

// notShown is a finding of a file that cannot be read.
func notShown(check, file string) Finding {
	return Finding{
		Check: check, State: Unknown, Found: "/" + file + " cannot be read",
		Remedy: "look on the host: a container or virtual machine need not show it",
	}
}

// text is a file's content without the blanks around it; empty when it cannot be read.
func text(root fs.FS, file string) string {
	content, err := fs.ReadFile(root, file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}
