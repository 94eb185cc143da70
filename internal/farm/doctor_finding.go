package farm

import (
	"fmt"
	"io/fs"
	"strings"
)

// FindingState is the severity of a finding.
type FindingState string

// States of findings.
const (
	// Well needs no attention.
	Well FindingState = "well"
	// Costly allows tuning, at a cost.
	Costly FindingState = "costs"
	// Prevents makes tuning impossible.
	Prevents FindingState = "prevents"
	// Unknown means that this machine does not expose the information.
	Unknown FindingState = "not known"
)

// Finding is the result of one check.
type Finding struct {
	Check string       `json:"check"`
	State FindingState `json:"state"`
	// Found describes the observation in a few words.
	Found string `json:"found"`
	// Cost is the consequence, and Remedy the fix, if the state is not Well.
	Cost   string `json:"cost,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// CannotTune returns an error that names everything that prevents tuning, or nil.
func CannotTune(findings []Finding) error {
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

// judged returns a finding that is well, or has the given cost and remedy.
func judged(check, found string, well bool, cost, remedy string) Finding {
	if well {
		return Finding{Check: check, State: Well, Found: found}
	}
	return Finding{Check: check, State: Costly, Found: found, Cost: cost, Remedy: remedy}
}

// notShown returns a finding for an unreadable file.
func notShown(check, file string) Finding {
	return Finding{
		Check: check, State: Unknown, Found: "/" + file + " cannot be read",
		Remedy: "look on the host: a container or virtual machine need not show it",
	}
}

// text returns the trimmed content of a file, or "" if it cannot be read.
func text(root fs.FS, file string) string {
	content, err := fs.ReadFile(root, file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}
