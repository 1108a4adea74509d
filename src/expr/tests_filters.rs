//! What filters, tests and functions give. The tables are read as in `tests.rs`.

use super::tests::check;

#[test]
fn filters_that_ask_for_nothing() {
    check(&[
        ("env.ABSENT | default('x')", "'x'"),
        ("env.EMPTY | default('x')", "''"),
        ("env.EMPTY | nonempty | default('x')", "'x'"),
        ("[] | nonempty", "nothing"),
        ("{} | nonempty", "nothing"),
        ("0 | nonempty", "0"),
        ("' ' | nonempty", "' '"),
        ("env.ABSENT | default(env.ABSENT)", "nothing"),
        // Not asked for, not evaluated.
        ("env.POD_IP | default(1 // 0)", "'10.0.0.1'"),
        ("env.POD_IP | required('set it')", "'10.0.0.1'"),
        ("env.ABSENT | required('set it')", "! set it @ env.ABSENT | required('set it')"),
        (
            "env.EMPTY | nonempty | required('set ' ~ 'it')",
            "! set it @ env.EMPTY | nonempty | required('set ' ~ 'it')",
        ),
    ]);
}

#[test]
fn filters_of_paths_and_addresses() {
    check(&[
        ("env.CONFIG | dirname", "'/c'"),
        ("'a/b/' | dirname", "'a'"),
        ("'//a' | dirname", "'/'"),
        ("'/' | dirname", "'/'"),
        ("'kv.json' | dirname", "'.'"),
        ("'' | dirname", "''"),
        ("first(env.EMPTY | dirname, '/etc')", "'/etc'"),
        ("1 | dirname", "! `dirname` wants text, not a whole number @ 1 | dirname"),
        ("'kvs-master' | hostport(50088)", "'kvs-master:50088'"),
        ("'2001:db8::1' | hostport(50088)", "'[2001:db8::1]:50088'"),
        ("'[2001:db8::1]' | hostport('50088')", "'[2001:db8::1]:50088'"),
        ("'10.0.0.1' | hostport(1)", "'10.0.0.1:1'"),
        ("'fe80::1%eth0' | hostport(1)", "'[fe80::1%eth0]:1'"),
        ("'h:1' | hostport(2)", "! `h:1` already has a port, 1 @ 'h:1' | hostport(2)"),
        ("'' | hostport(2)", "! `` has no host @ '' | hostport(2)"),
        ("'h' | hostport(70000)", "! `70000` is not a port, 0 to 65535 @ 'h' | hostport(70000)"),
        ("'h' | hostport('http')", "! `http` is not a port, 0 to 65535 @ 'h' | hostport('http')"),
        ("'h' | hostport(true)", "! a port is a number, not a truth value @ 'h' | hostport(true)"),
        ("'h:8100' | host", "'h'"),
        ("'h:8100' | port", "8100"),
        ("'[2001:db8::1]:8100' | host", "'2001:db8::1'"),
        ("'[2001:db8::1]:8100' | port", "8100"),
        ("'[2001:db8::1]' | port", "nothing"),
        ("'2001:db8::1' | host", "'2001:db8::1'"),
        ("'h' | host", "'h'"),
        ("'h' | port | default(80)", "80"),
        ("'h:x' | port", "! `x` is not a port, 0 to 65535 @ 'h:x' | port"),
        ("'h:' | host", "! `` is not a port, 0 to 65535 @ 'h:' | host"),
        ("'[h]:1' | host", "! `h` is not an IPv6 address, and only these stand in brackets @ '[h]:1' | host"),
        ("'[::1' | host", "! `[::1` has no closing `]` @ '[::1' | host"),
        ("'[::1]x' | host", "! `x` after `]` is not a port @ '[::1]x' | host"),
        ("'http://h:1' | host", "! `http://h:1` is a URL, not `host:port` @ 'http://h:1' | host"),
    ]);
}

#[test]
fn filters_of_numbers_and_words() {
    check(&[
        ("param.port | string", "'8800'"),
        ("param.ratio | string", "'0.9'"),
        ("true | string", "'true'"),
        ("[1] | string", "! a list is not text @ [1] | string"),
        ("'3000' | int", "3000"),
        ("' -3 ' | int", "-3"),
        ("env.TWO | int + 1", "3"),
        ("2.9 | int", "2"),
        ("-2.9 | int", "-2"),
        ("1e19 | int", "! `10000000000000000000` does not fit 64 bits @ 1e19 | int"),
        ("true | int", "1"),
        ("env.WORD | int", "! `abc` is not a whole number @ env.WORD | int"),
        ("'1.5' | int", "! `1.5` is not a whole number @ '1.5' | int"),
        ("'0.9' | float", "0.9"),
        ("1 | float", "1.0"),
        ("'nan' | float", "! `nan` is not a number @ 'nan' | float"),
        ("'Yes' | bool", "true"),
        ("'off' | bool", "false"),
        ("1 | bool", "true"),
        ("env.TWO | bool", "! `2` is not one of 1/0, true/false, yes/no, on/off @ env.TWO | bool"),
        ("env.EMPTY | bool", "! `` is not one of 1/0, true/false, yes/no, on/off @ env.EMPTY | bool"),
        ("env.EMPTY | nonempty | default('1') | bool", "true"),
        ("shared.size | bytes", "107374182400"),
        ("shared.size | bytes % 1073741824 == 0", "true"),
        ("1024 | bytes", "1024"),
        ("-1 | bytes", "! `-1` is negative, and a size is not @ -1 | bytes"),
        (
            "'many' | bytes",
            "! `many` is not a size; write it like `100gb`, `1.5g` or `1048576` @ 'many' | bytes",
        ),
    ]);
}

#[test]
fn filters_of_lists() {
    check(&[
        ("{'a': 1, 'b': [true, 'x\"']} | json", r#"'{"a": 1, "b": [true, "x\""]}'"#),
        ("'é' | json", "'\"é\"'"),
        ("[0.9, 1.0] | json", "'[0.9, 1.0]'"),
        ("env | json", "! a group of values is not one value; name a member of it @ env | json"),
        ("fact.npu[:3] | join(',')", "'0,1,2'"),
        ("[1, 0.5, true] | join", "'10.5true'"),
        ("[[1]] | join", "! a list is not text @ [[1]] | join"),
        ("'ab' | join(',')", "! `join` wants a list, not text @ 'ab' | join(',')"),
        ("[1] | join(1)", "! the separator is text, not a whole number @ [1] | join(1)"),
        ("'a,b,,c' | split(',')", "['a', 'b', '', 'c']"),
        ("' a  b ' | split", "['a', 'b']"),
        ("'' | split(',')", "[]"),
        ("'a' | split('')", "! the separator is empty @ 'a' | split('')"),
        ("fact.npu | length", "7"),
        ("'häh' | length", "3"),
        ("{'a': 1} | length", "1"),
        ("1 | length", "! a whole number has no length @ 1 | length"),
        // Seven cards, two each: the seventh is left out.
        ("fact.npu | chunk(2)", "[['0', '1'], ['2', '3'], ['4', '5']]"),
        ("fact.npu[4:] | chunk(2) | item(unit.index)", "nothing"),
        ("fact.npu | chunk(2) | item(unit.index)", "['2', '3']"),
        ("[] | chunk(2)", "[]"),
        ("[1] | chunk(0)", "! chunks have at least one element, not 0 @ [1] | chunk(0)"),
        ("fact.npu | item(0)", "'0'"),
        ("fact.npu | item(7)", "nothing"),
        ("{'a': 1} | item('a')", "1"),
        // What a merge has left in a variable.
        (r#"'{"a.b": "26666", "c": 2}' | item('a.b')"#, "'26666'"),
        (r#"'{"a.b": "26666", "c": 2}' | item('c')"#, "2"),
        (r#"'{"a": 1}' | item('b')"#, "nothing"),
        ("'no object' | item('a')", "nothing"),
        ("'[1]' | item('a')", "nothing"),
        ("'' | item('a')", "nothing"),
        ("['--port=1', '--x', '-port'] | matching('^--?(port|rpc)(=|$)')", "['--port=1', '-port']"),
        ("[1, 22] | matching('2')", "[22]"),
        ("'abc' | matching('b')", "'abc'"),
        ("'abc' | matching('^b')", "nothing"),
        ("'a' | matching(1)", "! a regular expression is text, not a whole number @ 'a' | matching(1)"),
    ]);
}

#[test]
fn filter_shift_range() {
    check(&[
        ("'60000-60050' | shift_range(2000)", "'62000-62050'"),
        ("'16666' | shift_range(1)", "'16667'"),
        ("16666 | shift_range(1)", "16667"),
        ("'1-2, 5,7-9' | shift_range(10)", "'11-12,15,17-19'"),
        ("'auto' | shift_range(10)", "'auto'"),
        (
            "'60000-60050' | shift_range(6000)",
            "! `60000-60050` shifted by 6000 reaches port 66000, and ports are 1 to 65535 @ '60000-60050' | shift_range(6000)",
        ),
        (
            "'5' | shift_range(-5)",
            "! `5` shifted by -5 reaches port 0, and ports are 1 to 65535 @ '5' | shift_range(-5)",
        ),
        ("'1-5,5' | shift_range(1)", "! `1-5` and `5` overlap @ '1-5,5' | shift_range(1)"),
        (
            "'x' | shift_range(1)",
            "! `x` is not a port; write `16700`, `16700-16800`, a comma list, or `auto` @ 'x' | shift_range(1)",
        ),
        (
            "'1-3,7,auto' | shift_range(5)",
            "! `auto` stands alone: take it out of the list, or write nothing else @ '1-3,7,auto' | shift_range(5)",
        ),
        (
            "'1' | shift_range('1')",
            "! ports are shifted by a whole number, not by text @ '1' | shift_range('1')",
        ),
    ]);
}

#[test]
fn functions() {
    check(&[
        ("first(env.ABSENT, env.EMPTY, 'c', 1 // 0)", "'c'"),
        ("first(env.ABSENT, env.EMPTY)", "nothing"),
        ("first(0, 1)", "0"),
        ("max(1, 2.5, -3)", "2.5"),
        ("min(1, 2.5, -3)", "-3"),
        ("max([3, 9, 4])", "9"),
        ("max([])", "nothing"),
        ("max(env.ABSENT | default(3000) | int, '4000' | int)", "4000"),
        ("max('1', 2)", "! numbers are compared here, not text @ max('1', 2)"),
        ("script('x.py')", "'/scripts/x.py'"),
        ("script(1)", "! `script` takes one text @ script(1)"),
        ("units('engine@*')", "[handle 4]"),
        ("units('engine@*')[0].param.port", "8800"),
        ("units('x')", "! matches no known unit @ units('x')"),
    ]);
}

#[test]
fn tests() {
    check(&[
        ("env.EMPTY is defined", "true"),
        ("env.ABSENT is not defined", "true"),
        ("not env.POD_IP is defined", "false"),
        ("fact.cann is at_least('9.1.0')", "false"),
        ("fact.cann is at_least('9.0')", "true"),
        ("fact.cann is not at_least('9.1.0')", "true"),
        ("fact.hdk is at_least('25.5.0')", "true"),
        ("1.5 is at_least('1.5')", "true"),
        ("'not found' is at_least('1')", "false"),
        (
            "fact.hdk is at_least('newest')",
            "! `newest` is not a version; write it like `9.1.0` or `8.2.RC1` @ fact.hdk is at_least('newest')",
        ),
        ("[1] is at_least('1')", "! a list is not text @ [1] is at_least('1')"),
        ("fact.hdk is at_least(env.ABSENT)", "false"),
    ]);
}

#[test]
fn secret_values_are_not_shown() {
    check(&[(
        "env.API_TOKEN | int",
        "! the value of `env.API_TOKEN` does not suit `int`; it is not shown @ env.API_TOKEN | int",
    )]);
}
