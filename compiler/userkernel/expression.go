package userkernel

import (
	"fmt"
	"math"
	"strconv"
)

// expression is a compiled expression over named integers. It returns an error if the value is undefined, as after
// a division by zero.
type expression func(names map[string]int64) (int64, error)

// Limits on the text of an expression.
const (
	maxExpression = 4096
	maxDepth      = 64
)

// parser parses expressions with the operators of C and their precedence: || && == != < <= > >= + - * / % ! and
// parentheses, over integers.
type parser struct {
	text  string
	at    int
	depth int
	known func(string) bool
}

// levels lists the binary operators by increasing precedence; longer ones come before their prefixes.
var levels = [][]string{{"||"}, {"&&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}}

func parseExpression(text string, known func(string) bool) (expression, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("an expression of %d bytes is over the limit of %d", len(text), maxExpression)
	}
	p := &parser{text: text, known: known}
	e, err := p.binary(0)
	if err == nil && p.at < len(text) {
		err = fmt.Errorf("%q is not expected", p.text[p.at:])
	}
	return e, err
}

func (p *parser) blanks() {
	for p.at < len(p.text) && (p.text[p.at] == ' ' || p.text[p.at] == '\t') {
		p.at++
	}
}

// accept consumes the first of the words that comes next, or returns "".
func (p *parser) accept(words ...string) string {
	p.blanks()
	for _, w := range words {
		if len(p.text)-p.at >= len(w) && p.text[p.at:p.at+len(w)] == w {
			p.at += len(w)
			p.blanks()
			return w
		}
	}
	return ""
}

func (p *parser) binary(level int) (expression, error) {
	if level == len(levels) {
		return p.unary()
	}
	left, err := p.binary(level + 1)
	for err == nil {
		op := p.accept(levels[level]...)
		if op == "" {
			return left, nil
		}
		var right expression
		if right, err = p.binary(level + 1); err == nil {
			left = combine(op, left, right)
		}
	}
	return nil, err
}

func (p *parser) unary() (expression, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("more than %d levels", maxDepth)
	}
	defer func() { p.depth-- }()
	switch p.accept("!", "-", "(") {
	case "!":
		e, err := p.unary()
		return func(names map[string]int64) (int64, error) {
			v, err := e(names)
			return truth(v == 0), err
		}, err
	case "-":
		e, err := p.unary()
		if err != nil {
			return nil, err
		}
		return combine("-", func(map[string]int64) (int64, error) { return 0, nil }, e), nil
	case "(":
		e, err := p.binary(0)
		if err == nil && p.accept(")") == "" {
			err = fmt.Errorf("a parenthesis is not closed")
		}
		return e, err
	}
	return p.atom()
}

func (p *parser) atom() (expression, error) {
	word := p.text[p.at : p.at+wordLength(p.text[p.at:])]
	p.at += len(word)
	p.blanks()
	switch {
	case word == "" && p.at < len(p.text):
		return nil, fmt.Errorf("%q is not expected", p.text[p.at:])
	case word == "":
		return nil, fmt.Errorf("something is missing at the end")
	case word[0] >= '0' && word[0] <= '9':
		v, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", word)
		}
		return func(map[string]int64) (int64, error) { return v, nil }, nil
	case !p.known(word):
		return nil, fmt.Errorf("%s is not a knob, nor a name of the workloads", word)
	}
	return func(names map[string]int64) (int64, error) { return names[word], nil }, nil
}

// combine returns a binary operation; && and || short-circuit.
func combine(op string, left, right expression) expression {
	return func(names map[string]int64) (int64, error) {
		a, err := left(names)
		switch {
		case err != nil:
			return 0, err
		case op == "&&" && a == 0:
			return 0, nil
		case op == "||" && a != 0:
			return 1, nil
		}
		b, err := right(names)
		if err != nil {
			return 0, err
		}
		return compute(op, a, b)
	}
}

func compute(op string, a, b int64) (int64, error) {
	switch op {
	case "&&", "||", "!=":
		if op == "!=" {
			return truth(a != b), nil
		}
		return truth(b != 0), nil
	case "==":
		return truth(a == b), nil
	case "<":
		return truth(a < b), nil
	case "<=":
		return truth(a <= b), nil
	case ">":
		return truth(a > b), nil
	case ">=":
		return truth(a >= b), nil
	case "/", "%":
		if b == 0 || b == -1 {
			if b == 0 {
				return 0, fmt.Errorf("a division by zero")
			}
			return compute("-", 0, a*truth(op == "/"))
		}
		if op == "/" {
			return a / b, nil
		}
		return a % b, nil
	}
	v, ok := arithmetic(op, a, b)
	if !ok {
		return 0, fmt.Errorf("the number exceeds 64 bits")
	}
	return v, nil
}

// arithmetic adds, subtracts or multiplies; ok is false on 64-bit overflow.
func arithmetic(op string, a, b int64) (v int64, ok bool) {
	switch op {
	case "+":
		v = a + b
		return v, (a^v)&(b^v) >= 0
	case "-":
		v = a - b
		return v, (a^b)&(a^v) >= 0
	}
	if a == 0 || b == 0 {
		return 0, true
	}
	v = a * b
	return v, a != math.MinInt64 && b != math.MinInt64 && v/b == a
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
