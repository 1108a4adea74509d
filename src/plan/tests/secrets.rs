//! What is secret stays where it belongs.

use super::*;

#[test]
fn secrets_are_masked_and_kept_from_argv() {
    let text = "command = 'c'\nenv = { PASS = '{{ param.pw }}', HF_TOKEN = 'hf_abc' }\n[param.pw]\ntype = 'secret'\ndefault = 'topsecret'\n[file.f]\npath = '/f'\ncontent = 'pw={{ param.pw }}'";
    let run = check_said(text, &[], &[]);
    assert_eq!(view::env(&run.plan, "u").unwrap(), "HF_TOKEN='***'\nPASS='***'\n");
    assert_eq!(run.exec("u").files[0].mode, 0o600);
    let shown = view::plan(&run.plan, &run.sources) + &view::json(&run.plan, &run.sources).to_string();
    assert!(!shown.contains("topsecret") && !shown.contains("hf_abc"), "{shown}");
    let secret = "[param.pw]\ntype = 'secret'\ndefault = 'topsecret'";
    let refused = ["error units/u.toml:1: a secret would stand in the command line"];
    check_said(&format!("command = ['c', '-p{{{{ param.pw }}}}']\n{secret}"), &[], &refused);
    // What only its name says is one, too.
    check_said("command = ['c', '{{ env.MY_TOKEN }}']", &["env MY_TOKEN=abc"], &refused);
    for place in ["ready.exec", "health.exec", "bootstrap.x.run", "bootstrap.x.check", "reload.command"] {
        check_said(
            &format!("command = 'c'\n{place} = ['probe', '-p{{{{ param.pw }}}}']\n{secret}"),
            &[],
            &["error units/u.toml:2: a secret would stand in the command line"],
        );
    }
}

#[test]
fn a_message_does_not_tell_a_secret() {
    let text = "command = 'c'\n[param.p]\ntype = 'secret'\ndefault = 'abc'\n[require.r]\ntest = \"param.p == 'zzz'\"\nmessage = '{{ param.p }} of {{ unit.name }}, {{ env.A_KEY }}'\nlevel = 'warning'";
    check_said(text, &["env A_KEY=k"], &["warning units/u.toml:6: *** of u, ***"]);
    // Braces in a text of an expression are none of the message.
    let text = text.replace("{{ env.A_KEY }}", "{{ param.p ~ \"}}\" }} or {{ \"}}\" }}");
    check_said(&text, &[], &["warning units/u.toml:6: *** of u, *** or }}"]);
}

#[test]
fn data_under_the_name_of_a_secret_is_shown_nowhere() {
    let text = "command = ['c', '{{ data.x.tokenizer }}']\nenv.WORDS = '{{ data.x | json }}'\n\
                [data.x]\nsecret_key = 'data-secret'\ntokenizer = 'llama-tok'\nport = 80";
    let run = check_said(text, &[], &[]);
    let shown = view::plan(&run.plan, &run.sources) + &view::json(&run.plan, &run.sources).to_string();
    assert!(!shown.contains("data-secret") && shown.contains("llama-tok"), "{shown}");
    let refused = ["error units/u.toml:1: a secret would stand in the command line"];
    check_said(&text.replace("data.x.tokenizer", "data.x.secret_key"), &[], &refused);
    let unit = &run.graph.units["u"];
    let cat = view::cat(&unit.tree, &run.sources);
    assert!(!cat.contains("data-secret") && cat.contains("llama-tok"), "{cat}");
}

#[test]
fn a_file_with_a_secret_is_its_owners_alone() {
    let check = |file: &str, mode: u32| {
        let run = check_said(&format!("command = 'c'\n[file.f]\npath = '/f'\n{file}"), &[], &[]);
        assert_eq!(run.exec("u").files[0].mode, mode, "{file}");
    };
    check("format = 'json'\ncontent = { hosts = [{ api_key = 'abcdefgh' }] }", 0o600);
    check("format = 'json'\ncontent = { hosts = [{ api_key = '' }], max_tokens = '512' }", 0o644);
    check("format = 'json'\ncontent = { api_key = 'abc' }", 0o600);
    check("content = \"user = 'a'\\npassword = 'abcdefgh'\\n\"", 0o600);
    check("content = \"user = 'a'\\npassword_file = '/etc/p'\\n\"", 0o644);
    check("format = 'json'\nmode = '0640'\ncontent = { api_key = 'abcdefgh' }", 0o640);
}
