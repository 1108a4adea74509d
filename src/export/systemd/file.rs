//! The text of one unit file: sections of settings under a comment that says where they are from and what is lost.

use crate::export::File;

/// A file under construction.
#[derive(Debug, Default)]
pub struct UnitFile {
    head: Vec<String>,
    lost: Vec<String>,
    sections: Vec<(&'static str, Vec<(String, String)>)>,
}

impl UnitFile {
    /// One that begins with these lines of comment.
    pub fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|line| (*line).to_owned()).collect(), ..Self::default() }
    }

    /// Adds a setting; the same one twice is said once.
    pub fn set(&mut self, section: &'static str, key: &str, value: impl Into<String>) {
        let entry = (key.to_owned(), value.into());
        let at = self.sections.iter().position(|(name, _)| *name == section);
        let at = at.unwrap_or_else(|| {
            self.sections.push((section, Vec::new()));
            self.sections.len() - 1
        });
        if let Some((_, settings)) = self.sections.get_mut(at)
            && !settings.contains(&entry)
        {
            settings.push(entry);
        }
    }

    /// Adds something that cannot be expressed.
    pub fn lose(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.lost.contains(&what) {
            self.lost.push(what);
        }
    }

    /// What cannot be expressed.
    pub fn lost(&self) -> &[String] {
        &self.lost
    }

    /// The text.
    pub fn file(&self, name: String) -> File {
        let mut text = String::new();
        let mut line = |words: &str| {
            text.push_str(words);
            text.push('\n');
        };
        for words in &self.head {
            line(&comment(words));
        }
        if !self.lost.is_empty() {
            line("#");
            line("# systemd cannot express:");
            for what in &self.lost {
                line(&comment(&format!("- {what}")));
            }
        }
        for (section, settings) in &self.sections {
            line("");
            line(&format!("[{section}]"));
            for (key, value) in settings {
                line(&format!("{key}={value}"));
            }
        }
        File { name, text }
    }
}

/// One line of comment, whatever the words hold.
fn comment(words: &str) -> String {
    let words: String = words.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    // A comment that ends so would take the next line with it.
    format!("# {}", words.trim_end().trim_end_matches('\\'))
}
