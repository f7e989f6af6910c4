//! Amounts of resources as vectors: names are numbered once, so placing compares numbers only.

use api::{node::SLOTS, placement::ResourceList};
use std::collections::HashMap;

/// Number of the resource `slots`, of which every Task takes one.
pub(crate) const SLOT: usize = 0;

/// The names of resources, in the order they were first seen.
#[derive(Debug)]
pub(crate) struct Names {
    numbers: HashMap<String, usize>,
    names: Vec<String>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            numbers: HashMap::from([(SLOTS.to_owned(), SLOT)]),
            names: vec![SLOTS.to_owned()],
        }
    }
}

impl Names {
    fn number(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }

    /// The name of a resource.
    pub fn name(&self, number: usize) -> &str {
        self.names.get(number).map_or("", String::as_str)
    }

    /// Reads a list; CPU counts in thousandths, everything else in whole units. A malformed quantity counts as none.
    pub fn read(&mut self, list: &ResourceList) -> Amounts {
        let mut amounts = Amounts::default();
        for (name, quantity) in list {
            let amount = if name == "cpu" {
                quantity.milli()
            } else {
                quantity.value()
            };
            let number = self.number(name);
            *amounts.at(number) = amount.unwrap_or(0);
        }
        amounts
    }

    /// Reads limits, those of nothing too.
    pub fn limits(&mut self, list: &ResourceList) -> Vec<(usize, u64)> {
        let amounts = self.read(list);
        list.keys()
            .map(|name| self.number(name))
            .map(|number| (number, amounts.get(number)))
            .collect()
    }

    /// An amount as people write it: `500m`, `2Gi`, `3`.
    pub fn show(&self, number: usize, amount: u64) -> String {
        if self.name(number) == "cpu" {
            return match amount % 1000 {
                0 => (amount / 1000).to_string(),
                _ => format!("{amount}m"),
            };
        }
        for (unit, size) in [("Gi", 1u64 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)] {
            if amount >= size {
                let tenths = (amount * 10).div_ceil(size);
                return match tenths % 10 {
                    0 => format!("{}{unit}", tenths / 10),
                    _ => format!("{}.{}{unit}", tenths / 10, tenths % 10),
                };
            }
        }
        amount.to_string()
    }
}

/// Amounts by the number of their resource; what is beyond the end is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amounts(Vec<u64>);

impl Amounts {
    pub fn at(&mut self, number: usize) -> &mut u64 {
        if number >= self.0.len() {
            self.0.resize(number + 1, 0);
        }
        &mut self.0[number]
    }

    pub fn get(&self, number: usize) -> u64 {
        self.0.get(number).copied().unwrap_or(0)
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.iter().copied().enumerate()
    }

    pub fn add(&mut self, other: &Amounts) {
        for (number, amount) in other.iter() {
            let sum = self.at(number);
            *sum = sum.saturating_add(amount);
        }
    }

    pub fn sub(&mut self, other: &Amounts) {
        for (number, amount) in other.iter() {
            let rest = self.at(number);
            *rest = rest.saturating_sub(amount);
        }
    }

    /// The largest share that any of these amounts has of `whole`.
    pub fn share(&self, whole: &Amounts) -> f64 {
        self.iter()
            .filter(|(number, amount)| *amount > 0 && whole.get(*number) > 0)
            .map(|(number, amount)| amount as f64 / whole.get(number) as f64)
            .fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::quantity::Quantity;

    fn list(pairs: &[(&str, &str)]) -> ResourceList {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), Quantity((*v).to_owned())))
            .collect()
    }

    #[test]
    fn amounts_are_shown_as_people_write_them() {
        let mut names = Names::default();
        let amounts = names.read(&list(&[("cpu", "1500m"), ("memory", "2Gi"), ("licence", "3")]));
        let shown: Vec<_> = amounts
            .iter()
            .map(|(n, a)| format!("{}={}", names.name(n), names.show(n, a)))
            .collect();
        assert_eq!(shown, ["slots=0", "cpu=1500m", "licence=3", "memory=2Gi"]);
        assert_eq!(
            names.show(3, (1 << 30) + 1),
            "1.1Gi",
            "rounded up: less would not do"
        );
    }

    #[test]
    fn the_dominant_share_is_the_largest() {
        let mut names = Names::default();
        let whole = names.read(&list(&[("cpu", "10"), ("memory", "100Gi")]));
        let part = names.read(&list(&[("cpu", "1"), ("memory", "50Gi")]));
        assert!((part.share(&whole) - 0.5).abs() < 1e-9);
    }
}
