const { burn } = require('./burn.cjs');

module.exports = async () => burn(0);
