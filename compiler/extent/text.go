package extent

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// String returns the expression as text, which Parse reads.
func (e Extent) String() string {
	if e.of == nil {
		return strconv.FormatInt(e.n, 10)
	}
	var text strings.Builder
	for k, t := range e.of.terms {
		writeTerm(&text, k == 0, t)
	}
	if n := e.of.plus; n != 0 {
		writeTerm(&text, false, term{by: n})
	}
	return text.String()
}

func writeTerm(text *strings.Builder, first bool, t term) {
	by := t.by
	switch {
	case first && by < 0:
		text.WriteByte('-')
	case by < 0:
		text.WriteString(" - ")
	case !first:
		text.WriteString(" + ")
	}
	if by < 0 {
		by = -by
	}
	var factors []string
	if by != 1 || len(t.of) == 0 {
		factors = append(factors, strconv.FormatInt(by, 10))
	}
	for _, a := range t.of {
		if len(t.of) == 1 && t.by == 1 {
			factors = append(factors, a.String())
		} else {
			factors = append(factors, a.factor())
		}
	}
	// A product of a number and a symbol's units is the symbol.
	if len(t.of) == 1 && t.of[0].symbol != nil && t.of[0].symbol.Step > 1 && by%t.of[0].symbol.Step == 0 {
		factors = []string{t.of[0].symbol.Name}
		if n := by / t.of[0].symbol.Step; n != 1 {
			factors = []string{strconv.FormatInt(n, 10), t.of[0].symbol.Name}
		}
	}
	text.WriteString(strings.Join(factors, "*"))
}

// String returns the atom as a term.
func (a *atom) String() string {
	switch {
	case a.symbol == nil && a.op == FloorDiv:
		return fmt.Sprintf("%s/%s", a.a.factor(), a.b.factor())
	case a.symbol == nil:
		return fmt.Sprintf("%s(%v, %v)", map[Op]string{Min: "min", Max: "max"}[a.op], a.a, a.b)
	case a.symbol.Step > 1:
		return fmt.Sprintf("%s/%d", a.symbol.Name, a.symbol.Step)
	}
	return a.symbol.Name
}

// factor returns the atom as a factor, with parentheses around a quotient.
func (a *atom) factor() string {
	if a.symbol == nil && a.op != FloorDiv || a.symbol != nil && a.symbol.Step == 1 {
		return a.String()
	}
	return "(" + a.String() + ")"
}

// factor returns an expression as a factor, with parentheses unless it is a non-negative number or a name.
func (e Extent) factor() string {
	text := e.String()
	if strings.ContainsAny(text, " */-") {
		return "(" + text + ")"
	}
	return text
}

// Parse reads an expression: numbers, names, + - * / (rounded toward minus infinity), min(a, b), max(a, b) and
// parentheses. symbol returns the extent for a name. The error names the position in the text.
func Parse(text string, symbol func(name string) (Extent, error)) (e Extent, err error) {
	defer Catch(&err)
	p := &parser{text: text, symbol: symbol}
	e = p.sum(0)
	if p.skip(); p.err == nil && p.at < len(text) {
		p.fail("unexpected %q", text[p.at:])
	}
	return e, p.err
}

// maxNesting limits the nesting of parentheses, and maxText the length of a text.
const maxNesting, maxText = 32, 1 << 10

type parser struct {
	text   string
	at     int
	symbol func(name string) (Extent, error)
	err    error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("extent %.100q, position %d: %s", p.text, p.at+1, fmt.Sprintf(format, args...))
	}
	p.at = len(p.text)
}

func (p *parser) skip() {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
}

// accept consumes a token if it is next.
func (p *parser) accept(token string) bool {
	p.skip()
	if !strings.HasPrefix(p.text[p.at:], token) {
		return false
	}
	p.at += len(token)
	return true
}

func (p *parser) expect(token string) {
	if !p.accept(token) {
		p.fail("expected %q", token)
	}
}

func (p *parser) sum(depth int) Extent {
	if depth > maxNesting || len(p.text) > maxText {
		p.fail("it is too long or too deeply nested")
		return Extent{}
	}
	e := p.product(depth)
	for p.err == nil {
		switch {
		case p.accept("+"):
			e = e.Plus(p.product(depth))
		case p.accept("-"):
			e = e.Minus(p.product(depth))
		default:
			return e
		}
	}
	return e
}

func (p *parser) product(depth int) Extent {
	e := p.factor(depth)
	for p.err == nil {
		switch {
		case p.accept("*"):
			e = e.Times(p.factor(depth))
		case p.accept("//"), p.accept("/"):
			by := p.factor(depth)
			if by.Min() <= 0 && by.Max() >= 0 {
				p.fail("division by %v, which may be zero", by)
				return Extent{}
			}
			e = e.Over(by)
		default:
			return e
		}
	}
	return e
}

func (p *parser) factor(depth int) Extent {
	switch p.skip(); {
	case p.accept("-"):
		if depth++; depth > maxNesting {
			p.fail("it is too deeply nested")
			return Extent{}
		}
		return Of(-1).Times(p.factor(depth))
	case p.accept("("):
		e := p.sum(depth + 1)
		p.expect(")")
		return e
	case p.accept("min("):
		return p.pair(depth, Extent.Least)
	case p.accept("max("):
		return p.pair(depth, Extent.Most)
	}
	word := p.word()
	switch n, err := strconv.ParseInt(word, 10, 64); {
	case word == "":
		p.fail("expected a number or a name")
	case err == nil && n <= 1<<48:
		return Of(n)
	case unicode.IsDigit(rune(word[0])):
		p.fail("%s is no number, or too large", word)
	default:
		e, err := p.symbol(word)
		if err != nil {
			p.fail("%v", err)
		}
		return e
	}
	return Extent{}
}

func (p *parser) pair(depth int, apply func(a, b Extent) Extent) Extent {
	a := p.sum(depth + 1)
	p.expect(",")
	b := p.sum(depth + 1)
	p.expect(")")
	return apply(a, b)
}

// word consumes a number or a name: letters, digits, and any of "_.:".
func (p *parser) word() string {
	start := p.at
	for p.at < len(p.text) && (p.text[p.at] >= 0x80 || strings.IndexByte("_.:", p.text[p.at]) >= 0 || unicode.IsLetter(rune(p.text[p.at])) || unicode.IsDigit(rune(p.text[p.at]))) {
		p.at++
	}
	return p.text[start:p.at]
}
