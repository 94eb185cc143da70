package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// lost returns the pages in the navigation that the site lacks.
func (s *site) lost(root string) (faults []string, err error) {
	file := filepath.Join(root, "lab", "docs", "site", "data", "navigation.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var navigation struct {
		Groups []struct {
			Pages []string `yaml:"pages"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal(text, &navigation); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(navigation.Groups) == 0 {
		return nil, fmt.Errorf("%s lists no pages", file)
	}
	for _, group := range navigation.Groups {
		for _, name := range group.Pages {
			if _, is := s.pages[strings.TrimSuffix(name, ".md")+".html"]; !is {
				faults = append(faults, fmt.Sprintf("navigation.yaml: %s: the site has no such page", name))
			}
		}
	}
	return faults, nil
}
